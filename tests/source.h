/* tests/source.h - files of the source tree, wherever the test is started: meson sets
 * PL_SOURCE_ROOT; without it the working directory is taken for the root. */
#ifndef PL_TESTS_SOURCE_H
#define PL_TESTS_SOURCE_H

#include <stdio.h>
#include <stdlib.h>

static inline const char *source_path(char *room, size_t size, const char *relative)
{
    const char *root = getenv("PL_SOURCE_ROOT");

    snprintf(room, size, "%s/%s", root ? root : ".", relative);
    return room;
}

/* The whole file with a NUL behind it, to be freed; NULL when it cannot be read. */
static inline char *source_read(const char *relative)
{
    char path[1024];
    FILE *f = fopen(source_path(path, sizeof path, relative), "rb");
    size_t len = 0, got;
    char *text = NULL;

    if (!f)
        return NULL;
    do {
        char *roomier = realloc(text, len + 65536 + 1);
        if (!roomier)
            abort();
        text = roomier;
        got = fread(text + len, 1, 65536, f);
        len += got;
    } while (got);
    fclose(f);
    text[len] = '\0';
    return text;
}

#endif
