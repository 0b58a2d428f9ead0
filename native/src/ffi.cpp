// The sweep behind XLA's foreign function interface: buffers in, the best instruction set of this processor, XLA's threads.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "sweep.h"
#include "xla/ffi/api/ffi.h"

namespace polystein {
namespace {

namespace ffi = xla::ffi;

// Tasks are counted off by whoever comes by, this thread too, so that none waits for a thread that never starts.
struct Shared {
  std::atomic<int64_t> next{0}, done{0};
  int64_t tasks;
  const std::function<void(int64_t)>* f;  // alive until all tasks are done, and not touched after
  std::mutex mutex;
  std::condition_variable finished;

  void work() {
    for (int64_t i; (i = next++) < tasks;) {
      (*f)(i);
      if (++done == tasks) {
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_all();
      }
    }
  }
};

void in_parallel(ffi::ThreadPool pool, int64_t tasks, const std::function<void(int64_t)>& f) {
  const int64_t threads = std::min<int64_t>(pool.num_threads(), tasks);
  if (threads <= 1) {
    for (int64_t i = 0; i < tasks; ++i) f(i);
    return;
  }
  auto shared = std::make_shared<Shared>();
  shared->tasks = tasks;
  shared->f = &f;
  for (int64_t t = 1; t < threads; ++t) pool.Schedule([shared] { shared->work(); });
  shared->work();
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->finished.wait(lock, [&] { return shared->done == tasks; });
}

template <class T>
auto target() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return static_cast<void (*)(const Sweep<T>&, const Parallel&)>(avx512::run);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return static_cast<void (*)(const Sweep<T>&, const Parallel&)>(avx2::run);
#endif
  return static_cast<void (*)(const Sweep<T>&, const Parallel&)>(plain::run);
}

template <ffi::DataType D>
ffi::Error sweep(ffi::ThreadPool pool, ffi::Buffer<D> row_x, ffi::Buffer<D> row_scores, ffi::Buffer<ffi::S32> row_id,
                 ffi::Buffer<D> col_x, ffi::Buffer<D> col_scores, ffi::Buffer<D> drive, ffi::Buffer<ffi::S32> col_id,
                 ffi::Buffer<ffi::PRED> live, ffi::Buffer<D> h, ffi::Buffer<D> value, ffi::Buffer<D> first,
                 ffi::ResultBuffer<D> drift, ffi::ResultBuffer<D> others, ffi::ResultBuffer<D> squares, bool octaves,
                 bool with_drift, bool with_sums) {
  using T = ffi::NativeType<D>;
  Sweep<T> s;
  s.rows = row_x.dimensions()[0];
  s.cols = col_x.dimensions()[0];
  s.dim = row_x.dimensions()[1];
  s.kernels = h.dimensions()[0];
  s.row_x = row_x.typed_data();
  s.row_scores = row_scores.typed_data();
  s.row_id = row_id.typed_data();
  s.col_x = col_x.typed_data();
  s.col_scores = col_scores.typed_data();
  s.drive = drive.typed_data();
  s.col_id = col_id.typed_data();
  s.live = live.typed_data();
  s.h = h.typed_data();
  s.value = value.typed_data();
  s.first = first.typed_data();
  s.octaves = octaves;
  s.drift = with_drift ? drift->typed_data() : nullptr;
  s.others = with_sums ? others->typed_data() : nullptr;
  s.squares = with_sums ? squares->typed_data() : nullptr;
  const bool small = s.rows * s.cols * (s.dim + s.kernels) < 100000;  // waking a thread would cost more
  static const auto run = target<T>();
  try {
    run(s, [&](int64_t tasks, const std::function<void(int64_t)>& f) {
      if (!small) return in_parallel(pool, tasks, f);
      for (int64_t i = 0; i < tasks; ++i) f(i);
    });
  } catch (const std::bad_alloc&) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "polystein-native: no memory left for a sweep over pairs");
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace polystein

#define POLYSTEIN_HANDLER(name, type)                                                                                     \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, polystein::sweep<type>,                                                             \
                                xla::ffi::Ffi::Bind()                                                                     \
                                    .Ctx<xla::ffi::ThreadPool>()                                                          \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<xla::ffi::S32>>()                                               \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<xla::ffi::S32>>()                                               \
                                    .Arg<xla::ffi::Buffer<xla::ffi::PRED>>()                                              \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Arg<xla::ffi::Buffer<type>>()                                                        \
                                    .Ret<xla::ffi::Buffer<type>>()                                                        \
                                    .Ret<xla::ffi::Buffer<type>>()                                                        \
                                    .Ret<xla::ffi::Buffer<type>>()                                                        \
                                    .Attr<bool>("octaves")                                                                \
                                    .Attr<bool>("with_drift")                                                             \
                                    .Attr<bool>("with_sums"))

#pragma GCC visibility push(default)
extern "C" int PolysteinMinorVersion() { return XLA_FFI_API_MINOR; }  // of XLA's interface: a newer one than XLA's own it refuses
POLYSTEIN_HANDLER(PolysteinSweepF32, xla::ffi::F32);
POLYSTEIN_HANDLER(PolysteinSweepF64, xla::ffi::F64);
