/* A time of day that jumps five times a second, by hours or days, forth and back, for the process that loads this library (LD_PRELOAD).
   Stamps of the kernel on received packets jump as well. Other clocks are those of the kernel. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

static int real(clockid_t id, struct timespec *t) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  return next(id, t);
}

static time_t jump(void) {
  static const int hours[] = {0, 5, -3, 24 * 40, -24 * 2, 1};
  struct timespec t = {0, 0};
  real(CLOCK_MONOTONIC, &t);
  uint64_t turn = ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000) / 200;
  return (time_t)hours[turn % (sizeof hours / sizeof *hours)] * 3600;
}

int clock_gettime(clockid_t id, struct timespec *t) {
  int result = real(id, t);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += jump();
  return result;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec now;
  (void)zone;
  int result = clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
  static ssize_t (*next)(int, struct msghdr *, int);
  if (!next) next = (ssize_t (*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
  ssize_t result = next(fd, m, flags);
  if (result < 0) return result;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec stamp;
      memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
      stamp.tv_sec += jump();
      memcpy(CMSG_DATA(c), &stamp, sizeof stamp);
    }
  }
  return result;
}
