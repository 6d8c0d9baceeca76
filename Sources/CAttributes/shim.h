// Extended attributes, for PromiseKit. Removable when the Glibc module exports <sys/xattr.h>.
#include <sys/xattr.h>
