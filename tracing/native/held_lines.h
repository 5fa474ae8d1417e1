// Writes the lines that a recording holds back when a fatal signal ends the process: those before it are on disk.
#pragma once

#include <Python.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>

#include "python_objects.h"

struct LinesOfFile {
  PyObject* lines = nullptr;
  char path[PATH_MAX];
};

// All methods are called with the GIL held. The handler calls only what a signal handler may: neither Python nor an
// allocator. If the lines are damaged, as the process is, another signal ends it.
class HeldLines {
 public:
  // lines: a list whose bytes objects are lines without their ends, or a bytearray of whole lines
  // path:  of the file that they are appended to
  // Throws PythonError.
  static void keep(PyObject* lines, const char* path) {
    for (LinesOfFile& entry : entries) {
      if (entry.lines != nullptr) continue;
      if (std::strlen(path) >= sizeof entry.path) break;
      std::strcpy(entry.path, path);
      entry.lines = (Py_INCREF(lines), lines);
      if (count++ == 0) install();
      return;
    }
    PyErr_Format(PyExc_ValueError, "the lines for %s cannot be kept: too many files, or too long a path", path);
    throw PythonError();
  }

  static void release(PyObject* lines) {
    for (LinesOfFile& entry : entries) {
      if (entry.lines != lines) continue;
      entry.lines = nullptr;
      Py_DECREF(lines);
      if (--count == 0) uninstall();
    }
  }

 private:
  static constexpr std::array kFatal{SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL};  // those of Python's faulthandler

  static void install() {
    owner = getpid();
    struct sigaction action {};
    action.sa_handler = write_all;
    action.sa_flags = SA_ONSTACK;  // that of faulthandler: the own one may have no space left
    for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &action, &earlier[i]);
  }

  static void uninstall() {
    for (size_t i = 0; i < kFatal.size(); ++i) {
      struct sigaction now;
      if (sigaction(kFatal[i], nullptr, &now) == 0 && now.sa_handler == write_all)
        sigaction(kFatal[i], &earlier[i], nullptr);
    }
  }

  static void write_all(int number) {
    static volatile sig_atomic_t entered = 0;
    if (entered) {  // by the handler that was installed earlier, to which this one is the earlier one
      signal(number, SIG_DFL);
      raise(number);
      return;
    }
    entered = 1;
    for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &earlier[i], nullptr);
    if (getpid() == owner)  // not a fork of it
      for (const LinesOfFile& entry : entries)
        if (entry.lines != nullptr) write(entry);
    raise(number);  // received when this handler returns
  }

  static void write(const LinesOfFile& entry) {
    const int file = open(entry.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (PyByteArray_CheckExact(entry.lines)) {
      write(file, PyByteArray_AS_STRING(entry.lines), PyByteArray_GET_SIZE(entry.lines), false);
    } else {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entry.lines); ++i) {
        PyObject* line = PyList_GET_ITEM(entry.lines, i);
        if (PyBytes_CheckExact(line)) write(file, PyBytes_AS_STRING(line), PyBytes_GET_SIZE(line), true);
      }
    }
    close(file);
  }

  static void write(int file, char* text, Py_ssize_t size, bool ends) {
    char end[] = "\n";
    const iovec parts[] = {{text, static_cast<size_t>(size)}, {end, 1}};
    if (writev(file, parts, ends ? 2 : 1) < 0) return;  // a full disk: the process ends anyway
  }

  static inline std::array<LinesOfFile, 24> entries;
  static inline std::array<struct sigaction, kFatal.size()> earlier;
  static inline int count = 0;
  static inline pid_t owner = 0;
};
