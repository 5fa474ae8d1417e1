// Functions of CUDA's driver, from the library that this process has loaded.
// Source: CUDA Driver API: execution control, context, stream and event management.
#pragma once

#include <Python.h>
#include <dlfcn.h>

#include <optional>
#include <stdexcept>
#include <string>

// Null: this process has not loaded CUDA's driver.
template <typename Function>
Function found_driver_function(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function>(dlsym(driver, name)) : nullptr;
}

template <typename Function>
Function driver_function(const char* name) {
  const auto found = found_driver_function<Function>(name);
  if (found == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
  return found;
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

// True if a launch on the stream would be captured into a graph, or is not allowed; nothing: it is no stream of CUDA's.
inline std::optional<bool> is_capturing(void* stream) {
  static const auto query = found_driver_function<int (*)(void* stream, int* status)>("cuStreamIsCapturing");
  int status = 0;
  if (query == nullptr) return std::nullopt;
  return query(stream, &status) != 0 || status != 0;
}

// Milliseconds between two events; nothing if the device has not passed them.
inline std::optional<float> elapsed(void* first, void* last) {
  using Elapsed = int (*)(float* milliseconds, void* first, void* last);
  static const auto elapsed = driver_function<Elapsed>("cuEventElapsedTime");
  constexpr int kNotReady = 600;
  float milliseconds = 0;
  const int status = elapsed(&milliseconds, first, last);
  if (status == kNotReady) return std::nullopt;
  succeeded(status, "cuEventElapsedTime");
  return milliseconds;
}

inline void* create_event() {
  static const auto create = driver_function<int (*)(void** event, unsigned flags)>("cuEventCreate");
  constexpr unsigned kDefault = 0;  // with times
  void* event = nullptr;
  succeeded(create(&event, kDefault), "cuEventCreate");
  return event;
}

// Without an error: the driver may have shut down.
inline void destroy_event(void* event) {
  static const auto destroy = found_driver_function<int (*)(void* event)>("cuEventDestroy_v2");
  if (destroy != nullptr) destroy(event);
}

inline void synchronize_event(void* event) {
  static const auto synchronize = driver_function<int (*)(void* event)>("cuEventSynchronize");
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = synchronize(event);
  Py_END_ALLOW_THREADS;
  succeeded(status, "cuEventSynchronize");
}

// Makes the primary context of a device that of this thread, if the thread has none, as Triton's launchers do.
inline void ensure_context(int device) {
  static const auto current = driver_function<int (*)(void** context)>("cuCtxGetCurrent");
  void* context = nullptr;
  succeeded(current(&context), "cuCtxGetCurrent");
  if (context != nullptr) return;
  static const auto of = driver_function<int (*)(int* handle, int device)>("cuDeviceGet");
  static const auto retain = driver_function<int (*)(void** context, int handle)>("cuDevicePrimaryCtxRetain");
  static const auto use = driver_function<int (*)(void* context)>("cuCtxSetCurrent");
  int handle = 0;
  succeeded(of(&handle, device), "cuDeviceGet");
  succeeded(retain(&context, handle), "cuDevicePrimaryCtxRetain");
  succeeded(use(context), "cuCtxSetCurrent");
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
