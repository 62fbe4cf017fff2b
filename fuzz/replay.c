/* main for a fuzz target without libFuzzer: runs the files, and the files of the folders, that are named on the command line, in order of name. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_runs;

static int run_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    uint8_t *exact = malloc(size ? size : 1); /* of that size, so that a sanitizer sees a read past its end */
    if (exact == NULL)
        return 1;
    memcpy(exact, data, size);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    n_runs++;
    return 0;
}

static int is_visible(const struct dirent *item)
{
    return item->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **items;
        int n = scandir(argv[i], &items, is_visible, alphasort);
        if (n < 0) {
            failed |= run_file(argv[i]);
            continue;
        }
        for (int k = 0; k < n; k++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], items[k]->d_name);
            failed |= run_file(path);
            free(items[k]);
        }
        free(items);
    }
    printf("%d inputs\n", n_runs);
    return failed || n_runs == 0;
}
