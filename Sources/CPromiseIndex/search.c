#include "CPromiseIndex.h"
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

// Without a way out, so that many bytes are looked at in one step.
static bool is_plain(const unsigned char *name, int count) {
    unsigned char others = 0;
    for (int place = 0; place < count; place++) others |= (name[place] < 0x20) | (name[place] > 0x7E);
    return others == 0;
}

static unsigned char folded(unsigned char byte) {
    return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

static bool contains(const unsigned char *name, int count, const unsigned char *text, int length) {
    if (length == 0) return true;
    unsigned char first = text[0], capital = first >= 'a' && first <= 'z' ? first & ~0x20 : first;
    for (int start = 0; start + length <= count; start++) {
        if (name[start] != first && name[start] != capital) continue;
        int place = 1;
        while (place < length && folded(name[start + place]) == text[place]) place++;
        if (place == length) return true;
    }
    return false;
}

static void name_may_contain(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    const unsigned char *name = sqlite3_value_blob(values[0]);
    const unsigned char *text = sqlite3_value_blob(values[1]);
    int name_count = sqlite3_value_bytes(values[0]), text_count = sqlite3_value_bytes(values[1]);
    // Of others Swift knows how they are shown, and folded.
    bool answer = !is_plain(name, name_count) || contains(name, name_count, text, text_count);
    sqlite3_result_int(context, answer);
}

int promise_index_add_functions(struct sqlite3 *database) {
    return sqlite3_create_function_v2(
        database, "name_may_contain", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
        name_may_contain, NULL, NULL, NULL);
}
