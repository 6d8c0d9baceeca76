#pragma once
// What is registered: everything is asked of descriptors, as a path may name something else a moment later.

// The content store: 0, or a negative errno that says what is wrong with it.
int check_store(int folder);

// A content file of that store: 0, or a negative errno.
int check_content(int store, int file);
