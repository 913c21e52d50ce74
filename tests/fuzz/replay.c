/* Runs a fuzz harness over the files of its corpus, without libFuzzer: `replay FILE-OR-FOLDER…`. A finding ends the
 * program by the sanitizer or by abort(). */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST_B = 1 << 20, PATH_LONGEST = 4096 };

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(LARGEST_B);
    if (file == NULL || data == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        if (file != NULL) {
            fclose(file);
        }
        free(data);
        return 1;
    }
    size_t size = fread(data, 1, LARGEST_B, file);
    fclose(file);
    /* a block of exactly that size: reading past the end is found */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact != NULL) {
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(data);
    return 0;
}

static int replay_folder(const char *path, size_t *files) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    int failed = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[PATH_LONGEST];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        struct stat info;
        if (stat(name, &info) == 0 && S_ISREG(info.st_mode)) {
            failed |= replay_file(name);
            ++*files;
        }
    }
    closedir(folder);
    return failed;
}

int main(int count, char **arguments) {
    size_t files = 0;
    int failed = 0;
    for (int i = 1; i < count; i++) {
        failed |= replay_folder(arguments[i], &files);
    }
    printf("%zu inputs replayed\n", files);
    return failed != 0 || files == 0;
}
