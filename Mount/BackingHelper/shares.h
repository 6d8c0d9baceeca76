#pragma once
// How many files all helpers of one user have registered, at most BACKING_COUNT_MAX.
#include <stdbool.h>

// Whether another one may be; then it counts until `share_less`.
bool share_more(void);
void share_less(void);
