/* url_file.c - see url_file.h. */
#include "sasl/url_file.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

static int failed(struct arena *a, const char *path, const char **problem)
{
    *problem = arena_printf(a, "%s: %s", path, strerror(errno));
    return *problem ? -EINVAL : -ENOMEM;
}

static int read_all(int fd, const char *path, size_t most, struct arena *a, struct str *out,
                    const char **problem)
{
    char *text = arena_alloc(a, most + 1);
    size_t n = 0;
    ssize_t got = 1;
    if (!text)
        return -ENOMEM;
    while (got > 0 && n < most) {
        got = read(fd, text + n, most - n);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            n += (size_t)got;
    }
    if (got < 0)
        return failed(a, path, problem);
    if (n == most) {
        *problem = "the file is too long";
        return -EINVAL;
    }
    text[n] = 0;
    *out = (struct str){text, (int32_t)n};
    return 0;
}

/* "file:///p", "file:/p" */
static const char *path_of(const char *url)
{
    if (strncasecmp(url, "file:", 5) != 0)
        return NULL;
    url += 5;
    if (strncmp(url, "//", 2) == 0)
        url = strchr(url + 2, '/');
    return url && *url == '/' ? url : NULL;
}

int url_file_read(const char *url, size_t most, struct arena *a, struct str *out,
                  const char **problem)
{
    const char *path = path_of(url);
    *problem = "only file:///path is served: there is no HTTP here";
    if (!path)
        return -EINVAL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(a, path, problem);
    int rc = read_all(fd, path, most, a, out, problem);
    close(fd);
    return rc;
}
