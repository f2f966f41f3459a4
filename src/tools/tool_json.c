#include "tools/tool_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "tools/tool_io.h"

void tool_json_begin(struct buf *line, const char *name)
{
    *line = BUF_INIT;
    buf_printf(line, "{\"timestamp\":%" PRId64 ",\"name\":\"%s\"", clock_wall_ms(clock_real()),
               name);
}

void tool_json_end(struct buf *line)
{
    buf_printf(line, "}\n");
    if (line->failed)
        tool_die("out of memory");
    flockfile(stdout);
    fwrite(line->p, 1, line->len, stdout);
    fflush(stdout);
    funlockfile(stdout);
    buf_free(line);
}

void tool_json_event(const char *name)
{
    struct buf line;
    tool_json_begin(&line, name);
    tool_json_end(&line);
}
