/* A disk that loses power, between a program and one folder: what the program has not synced is not there.
 *
 * Preloaded into a program (LD_PRELOAD), it keeps a second folder as the disk would be if the power failed now and no
 * page had been written that nobody synced. A file's bytes and length get there when the file is synced, its name when
 * the folder is. The program itself sees the first folder, as it sees the page cache of the system.
 *
 * DISK_FROM: the folder, absolute. DISK_TO: the other one, which exists, on the same file system.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 64

/* A file with bytes that nobody has synced. */
static struct dirty {
  ino_t inode;
  size_t count, room;
  struct { off_t at, length; } *ranges;
} dirty[FILES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what) {
  fprintf(stderr, "unsynced.c: %s: %s\n", what, strerror(errno));
  abort();
}

#define NEXT(name, type) ((type)dlsym(RTLD_NEXT, #name))

/* The path of the bytes of an inode on the disk. */
static const char *bytes_of(ino_t inode, char *path) {
  snprintf(path, 512, "%s/.bytes-%llu", getenv("DISK_TO"), (unsigned long long)inode);
  return path;
}

/* Whether a descriptor is a file right in the folder, or the folder itself; SQLite's shared memory is no matter of disks. */
static int is_inside(int fd, struct stat *found, int *is_folder) {
  char link[64], path[512];
  const char *from = getenv("DISK_FROM");
  if (!from || fstat(fd, found)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  *is_folder = S_ISDIR(found->st_mode) && !strcmp(path, from);
  size_t prefix = strlen(from);
  return *is_folder || (S_ISREG(found->st_mode) && !strncmp(path, from, prefix) && path[prefix] == '/' && !strstr(path, "-shm"));
}

static struct dirty *dirty_of(ino_t inode) {
  struct dirty *empty = NULL;
  for (int i = 0; i < FILES; i++) {
    if (dirty[i].inode == inode) return &dirty[i];
    if (!dirty[i].inode && !empty) empty = &dirty[i];
  }
  if (!empty) fail("too many files");
  empty->inode = inode;
  return empty;
}

static void wrote(int fd, off_t at, off_t length) {
  struct stat found;
  int is_folder;
  if (length <= 0 || !is_inside(fd, &found, &is_folder)) return;
  pthread_mutex_lock(&lock);
  struct dirty *file = dirty_of(found.st_ino);
  if (file->count == file->room) {
    file->room = file->room ? 2 * file->room : 64;
    file->ranges = realloc(file->ranges, file->room * sizeof *file->ranges);
    if (!file->ranges) fail("memory");
  }
  file->ranges[file->count].at = at;
  file->ranges[file->count++].length = length;
  pthread_mutex_unlock(&lock);
}

/* A file's bytes and length reach the disk. */
static void keep_bytes(int fd, const struct stat *found) {
  char path[512], *buffer = NULL;
  struct dirty *file = dirty_of(found->st_ino);
  int disk = NEXT(open64, int (*)(const char *, int, ...))(bytes_of(found->st_ino, path), O_CREAT | O_WRONLY, 0600);
  if (disk < 0) fail(path);
  for (size_t i = 0; i < file->count; i++) {
    off_t at = file->ranges[i].at;
    buffer = realloc(buffer, file->ranges[i].length);
    ssize_t read = pread(fd, buffer, file->ranges[i].length, at);
    if (read < 0) {
      /* Opened for writing alone. */
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
      int again = NEXT(open64, int (*)(const char *, int, ...))(link, O_RDONLY);
      read = pread(again, buffer, file->ranges[i].length, at);
      close(again);
    }
    if (read < 0 || NEXT(pwrite64, ssize_t (*)(int, const void *, size_t, off_t))(disk, buffer, read, at) != read) fail("bytes");
  }
  free(buffer);
  file->count = 0;
  if (NEXT(ftruncate64, int (*)(int, off_t))(disk, found->st_size)) fail("length");
  close(disk);
}

/* The names of the folder reach the disk: each with the bytes that it has there, if any. */
static void keep_names(void) {
  char from[512], to[1024], bytes[512], next[1024];
  struct dirent *entry;
  struct stat found;
  const char *disk = getenv("DISK_TO");
  DIR *folder = opendir(getenv("DISK_FROM"));
  if (!folder) fail("the folder");
  snprintf(next, sizeof next, "%s/.next", disk);
  while ((entry = readdir(folder))) {
    snprintf(from, sizeof from, "%s/%s", getenv("DISK_FROM"), entry->d_name);
    if (stat(from, &found) || !S_ISREG(found.st_mode) || strstr(from, "-shm")) continue;
    int file = NEXT(open64, int (*)(const char *, int, ...))(bytes_of(found.st_ino, bytes), O_CREAT | O_WRONLY, 0600);
    if (file < 0) fail(bytes);
    close(file);
    snprintf(to, sizeof to, "%s/%s", disk, entry->d_name);
    NEXT(unlink, int (*)(const char *))(next);
    if (link(bytes, next) || NEXT(rename, int (*)(const char *, const char *))(next, to)) fail(to);
    /* Renaming one name of a file to another one of it does nothing. */
    NEXT(unlink, int (*)(const char *))(next);
  }
  closedir(folder);
  if (!(folder = opendir(disk))) fail("the disk");
  while ((entry = readdir(folder))) {
    snprintf(from, sizeof from, "%s/%s", getenv("DISK_FROM"), entry->d_name);
    snprintf(to, sizeof to, "%s/%s", disk, entry->d_name);
    if (entry->d_name[0] != '.' && access(from, F_OK)) NEXT(unlink, int (*)(const char *))(to);
  }
  closedir(folder);
}

static void synced(int fd) {
  struct stat found;
  int is_folder;
  if (!is_inside(fd, &found, &is_folder)) return;
  pthread_mutex_lock(&lock);
  if (is_folder) keep_names();
  else keep_bytes(fd, &found);
  pthread_mutex_unlock(&lock);
}

/* A name is gone: if the file's number comes again, it is of another file. What the disk has under the name stays. */
static void gone(const struct stat *found) {
  char path[512];
  pthread_mutex_lock(&lock);
  NEXT(unlink, int (*)(const char *))(bytes_of(found->st_ino, path));
  struct dirty *file = dirty_of(found->st_ino);
  free(file->ranges);
  memset(file, 0, sizeof *file);
  pthread_mutex_unlock(&lock);
}

static int is_last_name(const char *path, struct stat *found) {
  const char *from = getenv("DISK_FROM");
  return from && !strncmp(path, from, strlen(from)) && !stat(path, found) && found->st_nlink == 1;
}

int unlink(const char *path) {
  struct stat found;
  int was_last = is_last_name(path, &found);
  int result = NEXT(unlink, int (*)(const char *))(path);
  if (!result && was_last) gone(&found);
  return result;
}

int rename(const char *from, const char *to) {
  struct stat found;
  int was_last = is_last_name(to, &found);
  int result = NEXT(rename, int (*)(const char *, const char *))(from, to);
  if (!result && was_last) gone(&found);
  return result;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  ssize_t written = NEXT(write, ssize_t (*)(int, const void *, size_t))(fd, bytes, length);
  if (fd > 2 && written > 0) wrote(fd, lseek(fd, 0, SEEK_CUR) - written, written);
  return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) {
  ssize_t written = NEXT(pwrite64, ssize_t (*)(int, const void *, size_t, off_t))(fd, bytes, length, at);
  wrote(fd, at, written);
  return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }

int fsync(int fd) {
  int result = NEXT(fsync, int (*)(int))(fd);
  if (!result) synced(fd);
  return result;
}

int fdatasync(int fd) {
  int result = NEXT(fdatasync, int (*)(int))(fd);
  if (!result) synced(fd);
  return result;
}
