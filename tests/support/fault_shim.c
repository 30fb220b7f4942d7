// Lets one system call on a store's files fail: preloaded into the process of tests/file_faults.rs.
//
// The test talks to it by opening paths that do not exist:
//   /strongroom-fault/arm/KIND/NUMBER/DIRECTORY   from now on, count calls on files below the directory
//   /strongroom-fault/report                      what was counted, and which call failed
//
// Kinds: eio (every call), enospc (calls that need room), emfile (opening), short (writes: half is
// written and said to be), torn (writes: half is written, then EIO), full (no room from there on),
// sector (every read of that block of 4 KiB of the file `db`, as of a disk that cannot read it).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum op { OPEN = 1, CREATE = 2, READ = 4, WRITE = 8, TRUNCATE = 16, RENAME = 32, SYNC = 64, REMOVE = 128 };

static char directory[2048];
static size_t directory_length;
static int kinds, error, is_short, is_lasting, is_sector;
static atomic_long count, fail_at = -1, struck = -1;
static char struck_call[4096];

static int is_below(const char *path) {
    return directory_length && !strncmp(path, directory, directory_length) && path[directory_length] == '/';
}

static const char *path_of(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlink, link, path, size - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

// Counts a call; true if this one is to fail.
static int strikes(enum op op, const char *call, const char *path) {
    if (is_sector || !(kinds & op) || !is_below(path)) return 0;
    long number = atomic_fetch_add(&count, 1), at = atomic_load(&fail_at);
    if (at < 0 || number < at || (number > at && !is_lasting)) return 0;
    if (number == at) {
        snprintf(struck_call, sizeof struck_call, "%s %s", call, path + directory_length + 1);
        atomic_store(&struck, number);
    }
    errno = error;
    return 1;
}

static int strikes_fd(enum op op, const char *call, int fd) {
    char path[2048];
    return directory_length && (kinds & op) && strikes(op, call, path_of(fd, path, sizeof path));
}

static void arm(const char *text) {
    static const struct { const char *name; int kinds, error, is_short, is_lasting; } KINDS[] = {
        {"eio", ~0, EIO, 0, 0},
        {"enospc", CREATE | WRITE | TRUNCATE | RENAME | SYNC, ENOSPC, 0, 0},
        {"emfile", OPEN | CREATE, EMFILE, 0, 0},
        {"short", WRITE, 0, 1, 0},
        {"torn", WRITE, EIO, 1, 0},
        {"full", CREATE | WRITE | TRUNCATE | RENAME, ENOSPC, 0, 1},
        {"sector", READ, EIO, 0, 1},
        {"off", 0, 0, 0, 0},
    };
    char kind[16] = "";
    long number = -1;
    directory_length = 0;
    sscanf(text, "%15[a-z]/%ld%2047s", kind, &number, directory);
    for (size_t at = 0; at < sizeof KINDS / sizeof *KINDS; at++) {
        if (strcmp(kind, KINDS[at].name)) continue;
        kinds = KINDS[at].kinds, error = KINDS[at].error;
        is_short = KINDS[at].is_short, is_lasting = KINDS[at].is_lasting;
    }
    is_sector = !strcmp(kind, "sector");
    atomic_store(&count, 0), atomic_store(&struck, -1), atomic_store(&fail_at, number);
    struck_call[0] = 0;
    directory_length = kinds ? strlen(directory) : 0;
}

static int report(void) {
    int fd = syscall(SYS_memfd_create, "report", 0);
    char text[4200];
    int length = snprintf(text, sizeof text, "%ld %s", atomic_load(&count), struck_call);
    syscall(SYS_write, fd, text, length);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    static const char CONTROL[] = "/strongroom-fault/";
    if (!strncmp(path, CONTROL, sizeof CONTROL - 1)) {
        const char *word = path + sizeof CONTROL - 1;
        if (!strcmp(word, "report")) return report();
        if (!strncmp(word, "arm/", 4)) arm(word + 4);
        errno = ENOENT;
        return -1;
    }
    if (strikes(flags & O_CREAT ? CREATE : OPEN, "open", path)) return -1;
    return syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
}

#define OPEN_FN(name, parameters, at)                                          \
    int name parameters {                                                      \
        mode_t mode = 0;                                                       \
        if (flags & (O_CREAT | O_TMPFILE)) {                                   \
            va_list rest;                                                      \
            va_start(rest, flags);                                             \
            mode = va_arg(rest, mode_t);                                       \
            va_end(rest);                                                      \
        }                                                                      \
        return open_at(at, path, flags, mode);                                 \
    }
OPEN_FN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN_FN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN_FN(openat, (int at, const char *path, int flags, ...), at)
OPEN_FN(openat64, (int at, const char *path, int flags, ...), at)

ssize_t read(int fd, void *bytes, size_t size) {
    return strikes_fd(READ, "read", fd) ? -1 : syscall(SYS_read, fd, bytes, size);
}

static ssize_t pread_at(int fd, void *bytes, size_t size, off_t at) {
    if (is_sector) {
        char path[2048];
        off_t block = atomic_load(&fail_at) * 4096;
        path_of(fd, path, sizeof path);
        size_t length = strlen(path);
        int is_db = is_below(path) && length > 3 && !strcmp(path + length - 3, "/db");
        if (!is_db || at >= block + 4096 || at + (off_t)size <= block) return syscall(SYS_pread64, fd, bytes, size, at);
        snprintf(struck_call, sizeof struck_call, "pread %s", path + directory_length + 1);
        errno = EIO;
        return -1;
    }
    return strikes_fd(READ, "pread", fd) ? -1 : syscall(SYS_pread64, fd, bytes, size, at);
}
ssize_t pread(int fd, void *bytes, size_t size, off_t at) { return pread_at(fd, bytes, size, at); }
ssize_t pread64(int fd, void *bytes, size_t size, off_t at) { return pread_at(fd, bytes, size, at); }

ssize_t write(int fd, const void *bytes, size_t size) {
    if (!strikes_fd(WRITE, "write", fd)) return syscall(SYS_write, fd, bytes, size);
    int kept = errno;
    ssize_t half = is_short && size > 1 ? syscall(SYS_write, fd, bytes, size / 2) : 0;
    if (is_short && !kept) return half ? half : syscall(SYS_write, fd, bytes, size);
    errno = kept;
    return -1;
}

static ssize_t pwrite_at(int fd, const void *bytes, size_t size, off_t at) {
    if (!strikes_fd(WRITE, "pwrite", fd)) return syscall(SYS_pwrite64, fd, bytes, size, at);
    int kept = errno;
    ssize_t half = is_short && size > 1 ? syscall(SYS_pwrite64, fd, bytes, size / 2, at) : 0;
    if (is_short && !kept) return half ? half : syscall(SYS_pwrite64, fd, bytes, size, at);
    errno = kept;
    return -1;
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return pwrite_at(fd, bytes, size, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) { return pwrite_at(fd, bytes, size, at); }

int ftruncate(int fd, off_t size) {
    return strikes_fd(TRUNCATE, "ftruncate", fd) ? -1 : syscall(SYS_ftruncate, fd, size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

int fsync(int fd) { return strikes_fd(SYNC, "fsync", fd) ? -1 : syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return strikes_fd(SYNC, "fdatasync", fd) ? -1 : syscall(SYS_fdatasync, fd); }
int sync_file_range(int fd, off64_t from, off64_t size, unsigned flags) {
    return strikes_fd(SYNC, "sync_file_range", fd) ? -1 : syscall(SYS_sync_file_range, fd, from, size, flags);
}

int rename(const char *from, const char *to) {
    return strikes(RENAME, "rename", to) ? -1 : syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}
int unlink(const char *path) {
    return strikes(REMOVE, "unlink", path) ? -1 : syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int mkdir(const char *path, mode_t mode) {
    return strikes(CREATE, "mkdir", path) ? -1 : syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
