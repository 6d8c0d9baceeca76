#pragma once
// Only CFuseTransport's C sources use it; Swift never imports it.
#include <liburing.h>
