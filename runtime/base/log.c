#include "runtime/base/log.h"
#include "runtime/base/atomics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const layer_names[FG_N_LAYERS] = {
#define FG_LAYER(NAME, TEXT) TEXT,
#include "runtime/base/layers.def"
#undef FG_LAYER
};

enum { MASK_UNREAD = 1u << 31 };
static _Atomic uint32_t layer_mask = MASK_UNREAD;

static uint32_t read_mask(void)
{
    const char *text = getenv("FRAMEGATE_DEBUG_TRACE");
    uint32_t mask = 0;
    while (text != NULL && *text != '\0') {
        size_t n = strcspn(text, ",");
        for (uint32_t i = 0; i < FG_N_LAYERS; i++)
            if ((n == strlen(layer_names[i]) && memcmp(text, layer_names[i], n) == 0) || (n == 3 && memcmp(text, "all", 3) == 0))
                mask |= 1u << i;
        text += n;
        text += *text == ',';
    }
    return mask;
}

int fg_log_is_on(fg_layer layer)
{
    /* Relaxed: two threads that both read the environment store the same word. */
    uint32_t mask = fg_load_relaxed(&layer_mask);
    if (mask & MASK_UNREAD) {
        mask = read_mask();
        fg_store_relaxed(&layer_mask, mask);
    }
    return (mask >> layer) & 1;
}

void fg_log_write(fg_layer layer, const char *func, const char *format, ...)
{
    int saved = errno;
    char line[512];
    int n = snprintf(line, sizeof line, "framegate[%s] %s: ", layer_names[layer], func);
    if (n > 0 && (size_t)n < sizeof line - 2) {
        va_list args;
        va_start(args, format);
        int m = vsnprintf(line + n, sizeof line - 1 - (size_t)n, format, args);
        va_end(args);
        n = m < 0 ? n : n + m;
        if ((size_t)n > sizeof line - 2)
            n = (int)sizeof line - 2;
        line[n] = '\n';
        fwrite(line, 1, (size_t)n + 1, stderr);
    }
    errno = saved;
}
