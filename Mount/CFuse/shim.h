#pragma once
// The one place that chooses libfuse's API level. `_FILE_OFFSET_BITS` stays undefined here: Swift's clang importer
// already uses 64-bit offsets on every platform we support, and defining it twice splits `off_t` into two types.
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 314
#endif
#include <fuse3/fuse_lowlevel.h>
