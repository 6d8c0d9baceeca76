// The bus, by libsystemd, and extended attributes, which the Glibc module does not show.
#pragma once
#include <sys/xattr.h>
#include <systemd/sd-bus.h>
