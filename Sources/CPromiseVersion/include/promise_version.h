// Which version this was built as.
#pragma once

/// `0.1.0`: what Package.swift says, or PROMISEFS_VERSION said when it was built.
const char *_Nonnull promise_version(void);
