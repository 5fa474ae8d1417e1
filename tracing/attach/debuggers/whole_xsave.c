// Loaded into a gdb before 14, so that it can write floating-point registers on a processor with AMX.
//
// The kernel takes them only with the whole XSAVE area of the process, 11 KB with AMX, and refuses the 2.7 KB
// that this gdb knows. The rest is read first, and written back as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long Ptrace(enum __ptrace_request, ...);
static Ptrace *original;

__attribute__((constructor)) static void loaded(void) {
  original = (Ptrace *)dlsym(RTLD_NEXT, "ptrace");
  // in gdb, not in a script that starts it: what gdb starts does not need this library, the first one listed
  if (!strstr(program_invocation_short_name, "gdb")) return;
  const char *all = getenv("LD_PRELOAD"), *others = all ? strchr(all, ':') : NULL;
  if (others) setenv("LD_PRELOAD", others + 1, 1);
  else unsetenv("LD_PRELOAD");
}

long ptrace(enum __ptrace_request request, ...) {
  va_list words;
  va_start(words, request);
  pid_t pid = va_arg(words, pid_t);
  void *address = va_arg(words, void *), *data = va_arg(words, void *);
  va_end(words);
  static char area[1 << 16];
  struct iovec whole = {area, sizeof area};
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
    const struct iovec *given = data;
    if (original(PTRACE_GETREGSET, pid, address, &whole) == 0 && given->iov_len < whole.iov_len) {
      memcpy(area, given->iov_base, given->iov_len);
      data = &whole;
    }
  }
  return original(request, pid, address, data);
}
