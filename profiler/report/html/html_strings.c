/* html_strings.c: see html_strings.h. */
#include "html_strings.h"

#include <string.h>

enum { MOST_BYTES = 1000 };

uint32_t html_string(struct base_strings *strings, const char *text)
{
    char cut[MOST_BYTES + sizeof "..."];
    if (strings->n == 0)
        base_strings_add(strings, "");
    if (!text || !*text)
        return 0;
    size_t n = strnlen(text, MOST_BYTES + 1);
    if (n > MOST_BYTES) {
        for (n = MOST_BYTES; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--;
        memcpy(cut, text, n);
        memcpy(cut + n, "...", sizeof "...");
        text = cut;
    }
    return (uint32_t)base_strings_add(strings, text);
}
