#include "CFuseTransport.h"
