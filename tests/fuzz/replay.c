/* replay.c - runs a fuzz target over files and folders of files, where there is no libFuzzer. Each
 * input lies in memory of its exact size, so that sanitizers see a byte too many. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        return -1;
    }
    long size = ftell(f);
    rewind(f);
    uint8_t *p = malloc(size > 0 ? (size_t)size : 1);
    size_t n = p ? fread(p, 1, (size_t)size, f) : 0;
    fclose(f);
    if (!p || n != (size_t)size) {
        perror(path);
        free(p);
        return -1;
    }
    LLVMFuzzerTestOneInput(p, n);
    free(p);
    return 1;
}

/* Number of inputs, -1 on error. */
static int run(const char *path)
{
    DIR *d = opendir(path);
    if (!d)
        return run_file(path);
    int count = 0;
    for (struct dirent *e; count >= 0 && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char sub[4096];
        snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
        int n = run(sub);
        count = n < 0 ? -1 : count + n;
    }
    closedir(d);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = run(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 1;
}
