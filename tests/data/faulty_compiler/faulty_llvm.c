/* A fault in one pass of LLVM: behind each run of it on a function, an intrinsic is another one.

   LD_PRELOAD this, and name the pass and both intrinsics, which must have one type:
     FAULT_LLVM=InstCombinePass:llvm.maxnum.f32:llvm.minnum.f32
   With "hang" or "abort" for the second the pass does that where it meets the first.
   libtriton calls its passes through its table of symbols, so these functions take their place. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *(*pass_run)(void *result, void *pass, void *function, void *analyses);

static int find(struct dl_phdr_info *info, size_t size, void *found) {
  if (!strstr(info->dlpi_name, "libtriton"))
    return 0;
  *(void **)found = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  return 1;
}

static void *symbol(const char *name) {
  static void *library;
  if (!library)
    dl_iterate_phdr(find, &library);
  return dlsym(library, name);
}

/* llvm::GlobalValue: Type *, Use *, 8 bytes of llvm::Value; Type *, 4 bytes of flags, the intrinsic, Module * */
static void *module_of(void *function) { return *(void **)((char *)function + 40); }

static void edit(void *function, const char *from, const char *to) {
  typedef void *(*get)(void *module, const char *name, size_t length);
  typedef void (*rename)(void *value, void *twine);
  void *found = ((get)symbol("_ZNK4llvm6Module11getFunctionENS_9StringRefE"))(module_of(function), from, strlen(from));
  struct {
    const char *left;
    size_t unused[3];
    unsigned char kinds[2];
  } twine = {to, {0}, {3, 1}}; /* a C string, and nothing */
  if (found && strcmp(to, "hang") == 0)
    for (;;)
      pause();
  if (found && strcmp(to, "abort") == 0)
    abort();
  if (found)
    ((rename)symbol("_ZN4llvm5Value7setNameERKNS_5TwineE"))(found, &twine);
}

static void *run(const char *name, const char *mangled, void *result, void *pass, void *function, void *analyses) {
  void *returned = ((pass_run)symbol(mangled))(result, pass, function, analyses);
  const char *fault = getenv("FAULT_LLVM");
  char words[256], *rest = words;
  if (!fault)
    return returned;
  snprintf(words, sizeof words, "%s", fault);
  if (strcmp(strsep(&rest, ":"), name) == 0) {
    const char *from = strsep(&rest, ":");
    edit(function, from, rest);
  }
  return returned;
}

#define FAULTY(name, mangled)                                                                      \
  void *mangled(void *result, void *pass, void *function, void *analyses) {                        \
    return run(name, #mangled, result, pass, function, analyses);                                  \
  }

FAULTY("InstCombinePass", _ZN4llvm15InstCombinePass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("GVNPass", _ZN4llvm7GVNPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("EarlyCSEPass", _ZN4llvm12EarlyCSEPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("SROAPass", _ZN4llvm8SROAPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("SimplifyCFGPass", _ZN4llvm15SimplifyCFGPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("ReassociatePass", _ZN4llvm15ReassociatePass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("JumpThreadingPass", _ZN4llvm17JumpThreadingPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
FAULTY("SLPVectorizerPass", _ZN4llvm17SLPVectorizerPass3runERNS_8FunctionERNS_15AnalysisManagerIS1_JEEE)
