#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder's part of a path, with its slash. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static bool is_below(const char *path, const char *folder) {
    return strncmp(path, folder, strlen(folder)) == 0;
}

/* Follows the links of path, which stands in target. False: it leads to what is no plain file, or by way of /dev or
 * /proc, as /dev/stdout does, to an open one. */
static bool follow(char target[PATH_MAX]) {
    enum { LINKS_MOST = 40 };
    for (int i = 0; i < LINKS_MOST; i++) {
        struct stat info;
        if (is_below(target, "/dev/") || is_below(target, "/proc/")) {
            return false;
        }
        if (lstat(target, &info) != 0) {
            return errno == ENOENT;
        }
        if (!S_ISLNK(info.st_mode)) {
            return S_ISREG(info.st_mode);
        }
        char link[PATH_MAX];
        const ssize_t length = readlink(target, link, sizeof link - 1);
        const size_t folder = length > 0 && link[0] == '/' ? 0 : folder_length(target);
        if (length <= 0 || folder + (size_t)length >= PATH_MAX) {
            return false;
        }
        memcpy(target + folder, link, (size_t)length);
        target[folder + (size_t)length] = '\0';
    }
    return false;
}

/* A new file in the folder of the target, as writable as the old one; -1: errno says why. */
static int make_temporary(dts_replacement *r) {
    enum { NAMES_TRIED = 100 };
    struct stat old;
    const bool replaces = stat(r->target, &old) == 0;
    if (replaces && access(r->target, W_OK) != 0) {
        return -1;
    }
    int file = -1;
    for (int i = 0; i < NAMES_TRIED && file < 0 && (i == 0 || errno == EEXIST); i++) {
        const int length = snprintf(r->temporary, PATH_MAX, "%.*s.dtsim-%ld-%d", (int)folder_length(r->target),
                                    r->target, (long)getpid(), i);
        errno = ENAMETOOLONG;
        file = length < PATH_MAX ? open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    }
    if (file >= 0 && replaces) {
        (void)fchmod(file, old.st_mode & 07777);
    }
    return file;
}

bool dts_replacement_open(dts_replacement *r, const char *path) {
    r->file = NULL;
    r->temporary[0] = '\0';
    const size_t length = strlen(path);
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(r->target, path, length + 1);
    int file = -1;
    if (follow(r->target)) {
        file = make_temporary(r);
        if (file < 0 && errno != EACCES && errno != EPERM) {
            return false;
        }
    }
    if (file < 0) { /* or a file that may be written, in a folder that may not */
        r->temporary[0] = '\0';
        r->file = fopen(path, "w");
        return r->file != NULL;
    }
    r->file = fdopen(file, "w");
    if (r->file == NULL) {
        const int error = errno;
        close(file);
        unlink(r->temporary);
        errno = error;
    }
    return r->file != NULL;
}

bool dts_replacement_close(dts_replacement *r, bool good) {
    int error = errno;
    if (fclose(r->file) != 0 && good) {
        error = errno;
        good = false;
    }
    if (r->temporary[0] != '\0') {
        if (good && rename(r->temporary, r->target) != 0) {
            error = errno;
            good = false;
        }
        if (!good) {
            unlink(r->temporary);
        }
    }
    errno = error;
    return good;
}
