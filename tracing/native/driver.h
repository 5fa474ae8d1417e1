// Functions of CUDA's driver, from the library that this process has loaded.
// Source: CUDA Driver API, cuLaunchKernel, cuEventRecord, cuEventQuery and cuEventElapsedTime.
#pragma once

#include <Python.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

template <typename Function>
Function driver_function(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* found = driver != nullptr ? dlsym(driver, name) : nullptr;
  if (found == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
  return reinterpret_cast<Function>(found);
}

inline void succeeded(int status, const char* name) {
  if (status != 0) throw std::runtime_error(std::string(name) + ": CUDA error " + std::to_string(status));
}

inline void launch_kernel(void* function, unsigned programs, unsigned threads, unsigned shared, void* stream,
                          void** parameters) {
  using Launch = int (*)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                         void** extra);
  static const auto launch = driver_function<Launch>("cuLaunchKernel");
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = launch(function, programs, 1, 1, threads, 1, 1, shared, stream, parameters, nullptr);
  Py_END_ALLOW_THREADS;
  succeeded(status, "cuLaunchKernel");
}

// True if the device has passed an event.
inline bool is_passed(void* event) {
  static const auto query = driver_function<int (*)(void* event)>("cuEventQuery");
  constexpr int kNotReady = 600;
  const int status = query(event);
  if (status != kNotReady) succeeded(status, "cuEventQuery");
  return status != kNotReady;
}

// Milliseconds between two events that the device has passed.
inline float elapsed(void* first, void* last) {
  using Elapsed = int (*)(float* milliseconds, void* first, void* last);
  static const auto elapsed = driver_function<Elapsed>("cuEventElapsedTime");
  float milliseconds = 0;
  succeeded(elapsed(&milliseconds, first, last), "cuEventElapsedTime");
  return milliseconds;
}

inline void record_event(void* event, void* stream) {
  using Record = int (*)(void* event, void* stream);
  static const auto record = driver_function<Record>("cuEventRecord");
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = record(event, stream);
  Py_END_ALLOW_THREADS;
  succeeded(status, "cuEventRecord");
}
