/* Sends a process a signal at the n-th change that it makes to files below a folder, or counts the changes. Loaded with
   LD_PRELOAD, and so in the way of Python's calls and of TensorFlow's; see forked_commands.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long signal_at;
static int signal_number;
static atomic_long changes;

/* From now on counts changes below a folder. The signal comes right before the n-th; with 0 never. */
void watch_changes(const char *path, long number, int signal) {
    strncpy(folder, path, sizeof folder - 1);
    signal_at = number;
    signal_number = signal;
}

long count_changes(void) { return changes; }

static void before_change(int directory, const char *path) {
    char place[PATH_MAX] = "", link[64], whole[2 * PATH_MAX];
    if (!*folder) return;
    if (!path || *path != '/') {
        if (directory == AT_FDCWD) {
            if (!getcwd(place, sizeof place)) return;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            ssize_t length = readlink(link, place, sizeof place - 1);
            place[length < 0 ? 0 : length] = 0;
        }
    }
    snprintf(whole, sizeof whole, "%s/%s", place, path ? path : "");
    char *begin = *place ? whole : whole + 1;
    if (strncmp(begin, folder, strlen(folder)) || begin[strlen(folder)] != '/') return;
    if (atomic_fetch_add(&changes, 1) + 1 == signal_at) kill(getpid(), signal_number);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define OPEN(name)                                           \
    int name(const char *path, int flags, ...) {             \
        va_list more;                                        \
        va_start(more, flags);                               \
        mode_t mode = va_arg(more, mode_t);                  \
        va_end(more);                                        \
        if (flags & WRITES) before_change(AT_FDCWD, path);   \
        return REAL(name)(path, flags, mode);                \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                         \
    int name(int at, const char *path, int flags, ...) {     \
        va_list more;                                        \
        va_start(more, flags);                               \
        mode_t mode = va_arg(more, mode_t);                  \
        va_end(more);                                        \
        if (flags & WRITES) before_change(at, path);         \
        return REAL(name)(at, path, flags, mode);            \
    }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                          \
    FILE *name(const char *path, const char *mode) {         \
        if (strpbrk(mode, "wa+")) before_change(AT_FDCWD, path); \
        return REAL(name)(path, mode);                       \
    }
FOPEN(fopen)
FOPEN(fopen64)

#define BEFORE(at, path, result, name, parameters, arguments) \
    result name parameters {                                  \
        before_change(at, path);                              \
        return REAL(name) arguments;                          \
    }
BEFORE(fileno(file), NULL, size_t, fwrite, (const void *data, size_t size, size_t n, FILE *file), (data, size, n, file))
BEFORE(fileno(file), NULL, int, fclose, (FILE *file), (file))
BEFORE(fd, NULL, ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
BEFORE(fd, NULL, ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
BEFORE(fd, NULL, ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
BEFORE(fd, NULL, ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
BEFORE(out, NULL, ssize_t, sendfile, (int out, int in, off_t *at, size_t size), (out, in, at, size))
BEFORE(out, NULL, ssize_t, sendfile64, (int out, int in, off64_t *at, size_t size), (out, in, at, size))
BEFORE(out, NULL, ssize_t, copy_file_range,
       (int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags), (in, from, out, to, size, flags))
BEFORE(fd, NULL, int, ftruncate, (int fd, off_t size), (fd, size))
BEFORE(fd, NULL, int, ftruncate64, (int fd, off64_t size), (fd, size))
BEFORE(AT_FDCWD, to, int, rename, (const char *from, const char *to), (from, to))
BEFORE(at2, to, int, renameat, (int at1, const char *from, int at2, const char *to), (at1, from, at2, to))
BEFORE(AT_FDCWD, path, int, unlink, (const char *path), (path))
BEFORE(at, path, int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
BEFORE(AT_FDCWD, path, int, remove, (const char *path), (path))
BEFORE(AT_FDCWD, path, int, mkdir, (const char *path, mode_t mode), (path, mode))
BEFORE(at, path, int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
BEFORE(AT_FDCWD, path, int, rmdir, (const char *path), (path))
BEFORE(AT_FDCWD, to, int, link, (const char *from, const char *to), (from, to))
BEFORE(AT_FDCWD, to, int, symlink, (const char *from, const char *to), (from, to))
