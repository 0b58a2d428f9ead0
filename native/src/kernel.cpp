// The sweep for one instruction set: compiled once for each, TARGET being its name.
//
// Rows are taken in blocks, each by one thread, so that sums do not depend on the number of threads. A block meets the
// columns C at a time: inner products of points and scores, then per row k_i and u_i of every kernel from these, then the
// product of both mixtures with scores and points. Nothing of size n x n is ever written.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "sweep.h"
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#if defined(__AVX512F__)
#define LANE_BYTES 64
#define MANY_REGISTERS 1
#elif defined(__AVX__)
#define LANE_BYTES 32
#define MANY_REGISTERS 0
#elif defined(__aarch64__)
#define LANE_BYTES 16
#define MANY_REGISTERS 1
#else
#define LANE_BYTES 16
#define MANY_REGISTERS 0
#endif

#define INLINE inline __attribute__((always_inline))

namespace polystein {
namespace TARGET {
namespace {

constexpr int64_t C = 128;        // columns at a time
constexpr int64_t ROWS = 64;      // rows of a block, at most
constexpr int64_t K = 512;        // dimensions at a time
constexpr int64_t PACK = 8;       // rows that lie interleaved
constexpr int64_t UNROLLED = 8;   // up to so many dimensions pairs are taken by differences, as in numerics.py
constexpr double CLOSE = 1e-2;    // as in numerics.py: closer pairs, compared with their norms, are taken by differences
constexpr int VECTORS = 2;        // in a panel

constexpr int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

template <class T>
using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
struct Of {
  typedef T V __attribute__((vector_size(LANE_BYTES), may_alias));
  typedef Int<T> I __attribute__((vector_size(LANE_BYTES), may_alias));
};
template <class T>
using Vec = typename Of<T>::V;
template <class T>
using Mask = typename Of<T>::I;
template <class T>
constexpr int64_t WIDTH = LANE_BYTES / sizeof(T);
template <class T>
constexpr int64_t PANEL = VECTORS * WIDTH<T>;

template <class T>
INLINE Vec<T> load(const T* p) { return *reinterpret_cast<const Vec<T>*>(p); }
template <class T>
INLINE void store(T* p, Vec<T> v) { *reinterpret_cast<Vec<T>*>(p) = v; }
template <class T>
INLINE Vec<T> all(T x) { return Vec<T>{} + x; }
template <class T>
INLINE T sum(Vec<T> v) {
  T total = 0;
  for (int l = 0; l < WIDTH<T>; ++l) total += v[l];
  return total;
}

template <class V, class A>
INLINE V vector(const A* p) { return *reinterpret_cast<const V*>(p); }
template <class T>
INLINE Vec<T> only(Vec<T> v, Mask<T> where) { return (Vec<T>)((Mask<T>)v & where); }

// Memory that a thread keeps from one sweep to the next, for giving it back to the system and having it mapped anew costs
// more than a small sweep. Handed out and taken back as from a stack; what does not fit is allocated as usual.
class Stack {
 public:
  ~Stack() { std::free(memory_); }

  char* take(int64_t bytes) {
    if (!in_use_ && most_ > size_ && size_ < KEPT) {
      std::free(memory_);
      size_ = 0;
      memory_ = allocate(std::min(most_, KEPT));
      size_ = std::min(most_, KEPT);
    }
    most_ = std::max(most_, in_use_ += bytes);
    if (used_ + bytes > size_) return allocate(bytes);
    return memory_ + std::exchange(used_, used_ + bytes);
  }

  void give_back(char* p, int64_t bytes) {
    in_use_ -= bytes;
    if (p >= memory_ && p < memory_ + size_) used_ -= bytes;
    else std::free(p);
  }

 private:
  static constexpr int64_t KEPT = 8 << 20;
  char* memory_ = nullptr;
  int64_t size_ = 0, used_ = 0, in_use_ = 0, most_ = 0;

  static char* allocate(int64_t bytes) {
    void* p = nullptr;
    if (posix_memalign(&p, 64, bytes)) throw std::bad_alloc();
    return static_cast<char*>(p);
  }
};
thread_local Stack stack;

// Memory aligned for vectors, not initialised.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(int64_t size) : bytes_(up(size * sizeof(T), 64)), data_(bytes_ ? stack.take(bytes_) : nullptr) {}
  Array(Array&& other) : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  Array& operator=(Array&& other) {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Array() {
    if (data_) stack.give_back(data_, bytes_);
  }
  operator T*() const { return reinterpret_cast<T*>(data_); }

 private:
  int64_t bytes_ = 0;
  char* data_ = nullptr;
};

template <class T>
struct Constants;
template <>
struct Constants<float> {
  static constexpr float least = -88, magic = 12582912, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr int bias = 127, mantissa = 23, terms = 7;
};
template <>
struct Constants<double> {
  static constexpr double least = -709, magic = 6755399441055744, ln2_high = 6.93147180369123816490e-01,
                          ln2_low = 1.90821492927058770002e-10;
  static constexpr int bias = 1023, mantissa = 52, terms = 13;
};
constexpr double factorial(int n) { return n < 2 ? 1.0 : n * factorial(n - 1); }

// k = exp(z) and e = exp(z) - 1 for z <= 0, each to rounding: z = n ln 2 + f, and the series of exp(f) - 1. nan stays nan.
template <class T>
INLINE void exponential(Vec<T> z, Vec<T>& e, Vec<T>& k) {
  using A = Constants<T>;
  z = z < A::least ? all<T>(A::least) : z;
  const Vec<T> shifted = z * T(1.4426950408889634) + A::magic;
  const Vec<T> n = shifted - A::magic;
  const Vec<T> f = (z - n * A::ln2_high) - n * A::ln2_low;
  Vec<T> p = all<T>(T(1 / factorial(A::terms)));
#pragma GCC unroll 16
  for (int i = A::terms - 1; i >= 2; --i) p = p * f + T(1 / factorial(i));
  p = p * f * f + f;
  const Mask<T> exponent = (Mask<T>)shifted - (Mask<T>)all<T>(A::magic) + A::bias;
  const Vec<T> scale = (Vec<T>)(exponent << A::mantissa);
  e = scale * p + (scale - T(1));
  k = scale * p + scale;
}

// |x|^2, x.s and x / alpha + alpha s of L points that lie interleaved; without scores the first only.
template <int64_t L, class T>
void measure(int64_t dims, const T* __restrict__ x, const T* __restrict__ s, T* __restrict__ mixed, T alpha, T* __restrict__ norms,
             T* __restrict__ owns) {
  const T inverse = 1 / alpha;
  T norm[L] = {}, own[L] = {};
  for (int64_t k = 0; k < dims * L; k += L) {
    for (int64_t l = 0; l < L; ++l) norm[l] += x[k + l] * x[k + l];
    if (s)
      for (int64_t l = 0; l < L; ++l) own[l] += x[k + l] * s[k + l];
    if (mixed)
      for (int64_t l = 0; l < L; ++l) mixed[k + l] = inverse * x[k + l] + alpha * s[k + l];
  }
  for (int64_t l = 0; l < L; ++l) norms[l] = norm[l], owns[l] = own[l];
}

// The columns of a sweep as the loops want them: panels of columns dimension by dimension, and panels of dimensions
// column by column. Missing columns are dead, missing dimensions zero.
template <class T>
struct Columns {
  int64_t count, panels, dim_panels;
  Array<T> origin, across, across_scores, across_mixed, across_drive, along, along_drive, norm, own;
  T alpha = 1;  // a power of two, near (|x| / |s|)^(1/2)
  Array<Int<T>> id, live;
  T *scores, *drive;

  Columns(const Sweep<T>& s, const Parallel& parallel)
      : count(up(s.cols, PANEL<T>)), panels(count / PANEL<T>), dim_panels((s.dim + PANEL<T> - 1) / PANEL<T>) {
    const int64_t d = s.dim;
    const bool few = d <= UNROLLED, sums = s.others, drift = s.drift, one = s.drive == s.col_scores;
    const bool two_scores = few && drift && !(one && sums);
    origin = Array<T>(d);
    across = Array<T>(count * d);
    if (sums) across_scores = Array<T>(count * d);
    if (sums && !few) across_mixed = Array<T>(count * d);
    if (two_scores) across_drive = Array<T>(count * d);
    if (drift && !few) {
      along = Array<T>(count * dim_panels * PANEL<T>);
      along_drive = Array<T>(count * dim_panels * PANEL<T>);
    }
    norm = Array<T>(count);
    own = Array<T>(count);
    id = Array<Int<T>>(count);
    live = Array<Int<T>>(count);
    scores = across_scores;
    drive = two_scores ? across_drive : across_scores;
    centre(s);
    if (across_mixed) balance(s);
    parallel(panels, [&](int64_t panel) { pack(s, panel); });
  }

  // The mean of the columns, in blocks so that the sum keeps its digits; 0 where differences are taken, which are exact.
  void centre(const Sweep<T>& s) {
    std::fill_n(static_cast<T*>(origin), s.dim, T(0));
    if (s.dim <= UNROLLED) return;
    std::vector<T> part(s.dim);
    for (int64_t j = 0; j < s.cols; j += C) {
      const int64_t end = std::min(j + C, s.cols);
      std::fill(part.begin(), part.end(), T(0));
      for (int64_t c = j; c < end; ++c)
        for (int64_t k = 0; k < s.dim; ++k) part[k] += s.col_x[c * s.dim + k];
      for (int64_t k = 0; k < s.dim; ++k) origin[k] += part[k];
    }
    for (int64_t k = 0; k < s.dim; ++k) origin[k] /= s.cols;
  }

  // Points and scores have the same size in y / alpha + alpha s for most points, whatever the few wildest are like; some
  // points are enough to know.
  void balance(const Sweep<T>& s) {
    const int64_t stride = (s.cols + 63) / 64;
    int64_t total = 0, seen = 0;
    for (int64_t j = 0; j < s.cols; j += stride, ++seen) {
      T x = 0, score = 0;
#pragma omp simd reduction(+ : x, score)
      for (int64_t k = 0; k < s.dim; ++k) {
        const T gap = s.col_x[j * s.dim + k] - origin[k];
        x += gap * gap;
        score += s.col_scores[j * s.dim + k] * s.col_scores[j * s.dim + k];
      }
      if (x > 0 && score > 0 && std::isfinite(x) && std::isfinite(score)) total += std::ilogb(x) - std::ilogb(score);
    }
    alpha = std::ldexp(T(1), static_cast<int>(std::lround(double(total) / seen / 4)));
  }

  void pack(const Sweep<T>& s, int64_t panel) {
    constexpr int64_t P = PANEL<T>;
    const int64_t d = s.dim, j0 = panel * P, there = std::min(P, s.cols - j0);
    T *norms = norm + j0, *owns = own + j0;
    for (int64_t l = 0; l < P; ++l) {
      id[j0 + l] = l < there ? s.col_id[j0 + l] : 0;
      live[j0 + l] = l < there && s.live[j0 + l] ? -1 : 0;
    }
    T* x = across + panel * d * P;
    T* scores_x = across_scores ? across_scores + panel * d * P : nullptr;
    T* drive_x = across_drive ? across_drive + panel * d * P : nullptr;
    T* mixed_x = across_mixed ? across_mixed + panel * d * P : nullptr;
    for (int64_t l = 0; l < P; ++l) {
      const int64_t from = (j0 + std::min(l, there - 1)) * d;
      const T in = l < there ? 1 : 0;
      for (int64_t k = 0; k < d; ++k) x[k * P + l] = in * (s.col_x[from + k] - origin[k]);
      if (scores_x)
        for (int64_t k = 0; k < d; ++k) scores_x[k * P + l] = in * s.col_scores[from + k];
      if (drive_x)
        for (int64_t k = 0; k < d; ++k) drive_x[k * P + l] = in * s.drive[from + k];
    }
    measure<P>(d, x, scores_x, mixed_x, alpha, norms, owns);
    if (!along) return;
    for (int64_t q = 0; q < dim_panels; ++q)
      for (int64_t l = 0; l < P; ++l) {
        T *x = along + (q * count + j0 + l) * P, *to = along_drive + (q * count + j0 + l) * P;
        const int64_t k0 = q * P, width = l < there ? std::min(P, d - k0) : 0;
        for (int64_t k = 0; k < P; ++k) {
          x[k] = k < width ? s.col_x[(j0 + l) * d + k0 + k] - origin[k0 + k] : 0;
          to[k] = k < width ? s.drive[(j0 + l) * d + k0 + k] : 0;
        }
      }
  }
};

// What one thread needs for a block of rows.
template <class T>
struct Block {
  static constexpr int64_t LD = C + WIDTH<T>;  // rows must not all fall into the same sets of the cache
  int64_t begin, rows;
  Array<T> y, scores, mixed, norm, own, r2, rs, ss, drift, pulls, repulsion, others, squares;

  Block(const Sweep<T>& s, int64_t most)
      : y(up(most, PACK) * s.dim), scores(s.others ? up(most, PACK) * s.dim : 0),
        mixed(s.others ? up(most, PACK) * s.dim : 0), norm(up(most, PACK)), own(up(most, PACK)),
        r2(up(most, PACK) * LD), rs(up(most, PACK) * LD), ss(up(most, PACK) * LD),
        drift(s.drift && s.dim > UNROLLED ? up(most, PACK) * up(s.dim, PANEL<T>) : 0),
        pulls(s.drift && s.dim <= UNROLLED ? most * s.dim * WIDTH<T> : 0), repulsion(most * WIDTH<T>),
        others(s.others ? most * s.kernels * WIDTH<T> : 0),
        squares(s.others ? most * s.kernels * WIDTH<T> : 0) {}

  // Rows interleaved PACK at a time, dimension by dimension.
  void start(const Sweep<T>& s, const Columns<T>& cols, int64_t from, int64_t count) {
    begin = from;
    rows = count;
    const int64_t d = s.dim, padded = up(rows, PACK);
    for (int64_t r = 0; r < padded; ++r) {
      const int64_t i = (from + std::min(r, rows - 1)) * d;
      T *to = y + r / PACK * d * PACK + r % PACK, *scores_to = scores + r / PACK * d * PACK + r % PACK;
      for (int64_t k = 0; k < d; ++k) to[k * PACK] = s.row_x[i + k] - cols.origin[k];
      if (s.others)
        for (int64_t k = 0; k < d; ++k) scores_to[k * PACK] = s.row_scores[i + k];
    }
    for (int64_t r = 0; r < padded; r += PACK)
      measure<PACK>(d, y + r * d, s.others ? scores + r * d : nullptr, s.others && d > UNROLLED ? mixed + r * d : nullptr,
                    cols.alpha, norm + r, own + r);
    if (s.others) {
      std::fill_n(static_cast<T*>(others), rows * s.kernels * WIDTH<T>, T(0));
      std::fill_n(static_cast<T*>(squares), rows * s.kernels * WIDTH<T>, T(0));
    }
    if (s.drift) {
      std::fill_n(static_cast<T*>(repulsion), rows * WIDTH<T>, T(0));
      if (d <= UNROLLED) std::fill_n(static_cast<T*>(pulls), rows * d * WIDTH<T>, T(0));
      else std::fill_n(static_cast<T*>(drift), padded * up(d, PANEL<T>), T(0));
    }
  }
};

// y.x, and where there are SUMS also s_y.s_x and (y/alpha + alpha s_y).(x/alpha + alpha s_x), for MR rows and NV vectors of
// columns, over some dimensions. With the third, y.s_x + s_y.x costs one product, not two.
template <class T, int MR, int NV, bool SUMS>
INLINE void dots(int64_t dims, const T* y, const T* sy, const T* my, const T* x, const T* sx, const T* mx, T* yx, T* mixed, T* ss,
                 bool more) {
  constexpr int64_t LD = Block<T>::LD;
  Vec<T> p[MR][NV], q[MR][NV], g[MR][NV];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      const int64_t at = r * LD + v * WIDTH<T>;
      p[r][v] = more ? load<T>(yx + at) : Vec<T>{};
      if (SUMS) q[r][v] = more ? load<T>(mixed + at) : Vec<T>{};
      if (SUMS) g[r][v] = more ? load<T>(ss + at) : Vec<T>{};
    }
  for (int64_t k = 0; k < dims; ++k) {
    Vec<T> xs[NV], ts[NV], ms[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      const int64_t at = k * PANEL<T> + v * WIDTH<T>;
      xs[v] = load<T>(x + at);
      if (SUMS) ts[v] = load<T>(sx + at);
      if (SUMS) ms[v] = load<T>(mx + at);
    }
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) {
        p[r][v] += y[k * PACK + r] * xs[v];
        if (SUMS) g[r][v] += sy[k * PACK + r] * ts[v];
        if (SUMS) q[r][v] += my[k * PACK + r] * ms[v];
      }
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      const int64_t at = r * LD + v * WIDTH<T>;
      store<T>(yx + at, p[r][v]);
      if (SUMS) store<T>(mixed + at, q[r][v]);
      if (SUMS) store<T>(ss + at, g[r][v]);
    }
}

// All inner products of a block of rows with some columns.
template <class T, bool SUMS>
void products(const Sweep<T>& s, const Columns<T>& cols, Block<T>& b, int64_t j0, int64_t count) {
  constexpr int64_t LD = Block<T>::LD, W = WIDTH<T>;
  constexpr int MR = SUMS || !MANY_REGISTERS ? 4 : 8, NV = SUMS && !MANY_REGISTERS ? 1 : VECTORS;
  for (int64_t k = 0; k < s.dim; k += K) {
    const int64_t dims = std::min(K, s.dim - k);
    for (int64_t c = 0; c < count; c += NV * W) {
      const int64_t at = ((j0 + c) / PANEL<T> * s.dim + k) * PANEL<T> + (j0 + c) % PANEL<T>;
      for (int64_t r = 0; r < b.rows; r += MR) {
        const int64_t row = (r / PACK * s.dim + k) * PACK + r % PACK, to = r * LD + c;
        dots<T, MR, NV, SUMS>(dims, b.y + row, b.scores + row, b.mixed + row, cols.across + at, cols.scores + at,
                              cols.across_mixed + at, b.r2 + to, b.rs + to, b.ss + to, k > 0);
      }
    }
  }
}

// drift += value @ s + first @ x for MR rows and a panel of dimensions.
template <class T, int MR>
INLINE void pull(int64_t count, const T* value, const T* first, const T* s, const T* x, T* drift, int64_t stride) {
  constexpr int64_t LD = Block<T>::LD;
  Vec<T> total[MR][VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) total[r][v] = load<T>(drift + r * stride + v * WIDTH<T>);
  for (int64_t c = 0; c < count; ++c) {
    Vec<T> xs[VECTORS], ts[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) {
      ts[v] = load<T>(s + c * PANEL<T> + v * WIDTH<T>);
      xs[v] = load<T>(x + c * PANEL<T> + v * WIDTH<T>);
    }
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const T a = value[r * LD + c], f = first[r * LD + c];
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) {
        total[r][v] += a * ts[v];
        total[r][v] += f * xs[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) store<T>(drift + r * stride + v * WIDTH<T>, total[r][v]);
}

template <class T>
void pulled(const Sweep<T>& s, const Columns<T>& cols, Block<T>& b, int64_t j0, int64_t count) {
  constexpr int64_t LD = Block<T>::LD;
  constexpr int MR = MANY_REGISTERS ? 8 : 4;
  const int64_t stride = up(s.dim, PANEL<T>);
  for (int64_t q = 0; q < cols.dim_panels; ++q) {
    const int64_t from = (q * cols.count + j0) * PANEL<T>;
    for (int64_t r = 0; r < b.rows; r += MR)
      pull<T, MR>(count, b.r2 + r * LD, b.rs + r * LD, cols.along_drive + from, cols.along + from,
                  b.drift + r * stride + q * PANEL<T>, stride);
  }
}

// The kernels at U vectors of pairs, given r2, rs and ss: both mixtures, which take the place of r2 and rs, and the sums of
// u_i = k_i (ss + (2/h_i) (rs + d - 2 r2/h_i)). The ladder of octaves squares e = k - 1 near 1 and k below 1/2, as Octaves does.
template <class T, int U, bool OCTAVES, bool DRIFT, bool SUMS>
INLINE void kernels(const Sweep<T>& s, const T* two_over_h, const T* minus_one_over_h, Int<T> row_id, const Int<T>* id,
                    const Int<T>* live, T* r2, T* rs, const T* ss, T* others, T* squares, Vec<T>& repulsion) {
  constexpr int64_t W = WIDTH<T>;
  const int64_t m = s.kernels;
  Vec<T> e[U], k[U], g[U], t[U], q[U], z[U], value[U], first[U];
#pragma GCC unroll 4
  for (int v = 0; v < U; ++v) {
    z[v] = load<T>(r2 + v * W);
    if (OCTAVES) exponential<T>(z[v] * minus_one_over_h[m - 1], e[v], k[v]);
    if (SUMS) {
      const Mask<T> other = vector<Mask<T>>(live + v * W) & (vector<Mask<T>>(id + v * W) != row_id);
      g[v] = only<T>(load<T>(ss + v * W), other);
      t[v] = only<T>(load<T>(rs + v * W) + T(s.dim), other);
      q[v] = only<T>(z[v], other);
      if (OCTAVES) q[v] *= two_over_h[m - 1];
    }
    value[v] = first[v] = Vec<T>{};
  }
  for (int64_t i = m - 1; i >= 0; --i) {
    const T two_h = two_over_h[i];
    Vec<T> sum_u{}, sum_square{};
#pragma GCC unroll 4
    for (int v = 0; v < U; ++v) {
      if (!OCTAVES) exponential<T>(z[v] * minus_one_over_h[i], e[v], k[v]);
      if (DRIFT) {
        value[v] += s.value[i] * k[v];
        first[v] += s.first[i] * k[v];
      }
      if (SUMS) {
        const Vec<T> u = k[v] * (g[v] + two_h * (t[v] - (OCTAVES ? q[v] : q[v] * two_h)));
        sum_u += u;
        sum_square += u * u;
        if (OCTAVES) q[v] += q[v];
      }
      if (OCTAVES) {
        e[v] = e[v] * (2 + e[v]);
        k[v] = k[v] < T(0.5) ? k[v] * k[v] : 1 + e[v];
      }
    }
    if (SUMS) {
      store<T>(others + i * W, load<T>(others + i * W) + sum_u);
      store<T>(squares + i * W, load<T>(squares + i * W) + sum_square);
    }
  }
  if (DRIFT) {
#pragma GCC unroll 4
    for (int v = 0; v < U; ++v) {
      const Mask<T> there = vector<Mask<T>>(live + v * W);
      first[v] = only<T>(first[v], there);
      store<T>(r2 + v * W, only<T>(value[v], there));
      store<T>(rs + v * W, first[v]);
      repulsion += first[v];
    }
  }
}

// r2 and rs of one row with some columns, from inner products; true where some pair lies so close that they lost digits.
template <class T, bool SUMS>
INLINE bool distances(const Columns<T>& cols, const Block<T>& b, int64_t r, Int<T> row_id, int64_t j0, int64_t count) {
  constexpr int64_t LD = Block<T>::LD, W = WIDTH<T>;
  T *r2 = b.r2 + r * LD, *rs = b.rs + r * LD, *ss = b.ss + r * LD;
  const T norm = b.norm[r], own = b.own[r], square = cols.alpha * cols.alpha, inverse = 1 / square;
  Mask<T> close{};
  for (int64_t c = 0; c < count; c += W) {
    const Mask<T> other = vector<Mask<T>>(cols.id + j0 + c) != row_id;
    const Vec<T> norms = norm + load<T>(cols.norm + j0 + c), yx = load<T>(r2 + c);
    Vec<T> z = norms - 2 * yx;
    z = only<T>(z < 0 ? Vec<T>{} : z, other);
    close |= (z < T(CLOSE) * norms) & other & vector<Mask<T>>(cols.live + j0 + c);
    store<T>(r2 + c, z);
    if (!SUMS) continue;
    const Vec<T> crossed = load<T>(rs + c) - (inverse * yx + square * load<T>(ss + c));
    store<T>(rs + c, only<T>(own + load<T>(cols.own + j0 + c) - crossed, other));
  }
  Int<T> any = 0;
  for (int l = 0; l < W; ++l) any |= close[l];
  return any;
}

// The close pairs of one row by differences; their columns.
template <class T>
int64_t mend(const Sweep<T>& s, const Columns<T>& cols, Block<T>& b, int64_t r, int64_t j0, int64_t count, int64_t* found) {
  constexpr int64_t LD = Block<T>::LD;
  const int64_t i = b.begin + r;
  int64_t close = 0;
  for (int64_t c = 0; c < std::min(count, s.cols - j0); ++c) {
    const int64_t j = j0 + c;
    if (s.col_id[j] == s.row_id[i] || !s.live[j] || !(b.r2[r * LD + c] < T(CLOSE) * (b.norm[r] + cols.norm[j]))) continue;
    T z = 0, t = 0;
#pragma omp simd reduction(+ : z, t)
    for (int64_t k = 0; k < s.dim; ++k) {
      const T gap = s.row_x[i * s.dim + k] - s.col_x[j * s.dim + k];
      z += gap * gap;
      if (s.others) t += gap * (s.row_scores[i * s.dim + k] - s.col_scores[j * s.dim + k]);
    }
    b.r2[r * LD + c] = z;
    b.rs[r * LD + c] = t;
    found[close++] = c;
  }
  return close;
}

// What close pairs do to the drift, by differences, and out of what follows.
template <class T>
void repel(const Sweep<T>& s, Block<T>& b, int64_t r, int64_t j0, int64_t close, const int64_t* found) {
  constexpr int64_t LD = Block<T>::LD;
  const int64_t i = b.begin + r;
  T* drift = b.drift + r * up(s.dim, PANEL<T>);
  for (int64_t f = 0; f < close; ++f) {
    const int64_t c = found[f], j = j0 + c;
    T& first = b.rs[r * LD + c];
    for (int64_t k = 0; k < s.dim; ++k) drift[k] += first * (s.col_x[j * s.dim + k] - s.row_x[i * s.dim + k]);
    b.repulsion[r * WIDTH<T> + c % WIDTH<T>] -= first;
    first = 0;
  }
}

// Few dimensions: everything by differences, in registers.
template <class T, bool SUMS>
INLINE void differences(const Sweep<T>& s, const Columns<T>& cols, const Block<T>& b, int64_t r, int64_t j0, int64_t count) {
  constexpr int64_t LD = Block<T>::LD, W = WIDTH<T>;
  const int64_t d = s.dim, row = r / PACK * d * PACK + r % PACK;
  for (int64_t c = 0; c < count; c += W) {
    const int64_t from = (j0 + c) / PANEL<T> * d * PANEL<T> + (j0 + c) % PANEL<T>;
    Vec<T> z{}, t{}, g{};
    for (int64_t k = 0; k < d; ++k) {
      const Vec<T> gap = b.y[row + k * PACK] - load<T>(cols.across + from + k * PANEL<T>);
      z += gap * gap;
      if (SUMS) {
        const Vec<T> score = load<T>(cols.scores + from + k * PANEL<T>);
        t += gap * (b.scores[row + k * PACK] - score);
        g += b.scores[row + k * PACK] * score;
      }
    }
    store<T>(b.r2 + r * LD + c, z);
    if (SUMS) store<T>(b.rs + r * LD + c, t);
    if (SUMS) store<T>(b.ss + r * LD + c, g);
  }
}

template <class T>
INLINE void pulled_by_differences(const Sweep<T>& s, const Columns<T>& cols, Block<T>& b, int64_t r, int64_t j0, int64_t count) {
  constexpr int64_t LD = Block<T>::LD, W = WIDTH<T>;
  const int64_t d = s.dim, row = r / PACK * d * PACK + r % PACK;
  for (int64_t k = 0; k < d; ++k) {
    Vec<T> total{};
    for (int64_t c = 0; c < count; c += W) {
      const int64_t from = ((j0 + c) / PANEL<T> * d + k) * PANEL<T> + (j0 + c) % PANEL<T>;
      total += load<T>(b.r2 + r * LD + c) * load<T>(cols.drive + from);
      total += load<T>(b.rs + r * LD + c) * (load<T>(cols.across + from) - b.y[row + k * PACK]);
    }
    T* to = b.pulls + (r * d + k) * W;
    store<T>(to, load<T>(to) + total);
  }
}

template <class T, bool OCTAVES, bool DRIFT, bool SUMS>
void meet(const Sweep<T>& s, const Columns<T>& cols, Block<T>& b, const T* two_over_h, const T* minus_one_over_h) {
  constexpr int64_t LD = Block<T>::LD, W = WIDTH<T>;
  constexpr int U = MANY_REGISTERS ? 4 : 2;
  const bool few = s.dim <= UNROLLED;
  const int64_t m = s.kernels;
  Array<T> others(m * W), squares(m * W);
  int64_t found[C];
  for (int64_t j0 = 0; j0 < s.cols; j0 += C) {
    const int64_t count = up(std::min(C, s.cols - j0), W);
    if (!few) products<T, SUMS>(s, cols, b, j0, count);
    for (int64_t r = 0; r < b.rows; ++r) {
      const Int<T> row_id = s.row_id[b.begin + r];
      int64_t close = 0;
      if (few) differences<T, SUMS>(s, cols, b, r, j0, count);
      else if (distances<T, SUMS>(cols, b, r, row_id, j0, count)) close = mend(s, cols, b, r, j0, count, found);
      Vec<T> repulsion{};
      if (SUMS)
        for (int64_t i = 0; i < m * W; ++i) others[i] = squares[i] = 0;
      int64_t c = 0;
      T *r2 = b.r2 + r * LD, *rs = b.rs + r * LD, *ss = b.ss + r * LD;
      const Int<T> *id = cols.id + j0, *live = cols.live + j0;
      for (; c + U * W <= count; c += U * W)
        kernels<T, U, OCTAVES, DRIFT, SUMS>(s, two_over_h, minus_one_over_h, row_id, id + c, live + c, r2 + c, rs + c, ss + c,
                                            others, squares, repulsion);
      for (; c < count; c += W)
        kernels<T, 1, OCTAVES, DRIFT, SUMS>(s, two_over_h, minus_one_over_h, row_id, id + c, live + c, r2 + c, rs + c, ss + c,
                                            others, squares, repulsion);
      if (SUMS)
        for (int64_t i = 0; i < m * W; ++i) {
          b.others[r * m * W + i] += others[i];
          b.squares[r * m * W + i] += squares[i];
        }
      if (DRIFT) {
        store<T>(b.repulsion + r * W, load<T>(b.repulsion + r * W) + repulsion);
        if (few) pulled_by_differences(s, cols, b, r, j0, count);
        if (close) repel(s, b, r, j0, close, found);
      }
    }
    if (DRIFT && !few) pulled(s, cols, b, j0, count);
  }
}

template <class T>
void finish(const Sweep<T>& s, const Columns<T>& cols, const Block<T>& b) {
  const int64_t d = s.dim, m = s.kernels, stride = up(d, PANEL<T>);
  for (int64_t r = 0; r < b.rows; ++r) {
    const int64_t i = b.begin + r;
    if (s.others)
      for (int64_t h = 0; h < m; ++h) {
        s.others[i * m + h] = sum<T>(load<T>(b.others + (r * m + h) * WIDTH<T>));
        s.squares[i * m + h] = sum<T>(load<T>(b.squares + (r * m + h) * WIDTH<T>));
      }
    if (!s.drift) continue;
    if (d <= UNROLLED) {
      for (int64_t k = 0; k < d; ++k) s.drift[i * d + k] = sum<T>(load<T>(b.pulls + (r * d + k) * WIDTH<T>));
    } else {
      const T repulsion = sum<T>(load<T>(b.repulsion + r * WIDTH<T>));
      for (int64_t k = 0; k < d; ++k)
        s.drift[i * d + k] = b.drift[r * stride + k] - repulsion * (s.row_x[i * d + k] - cols.origin[k]);
    }
  }
}

// Numbers below the normal ones count as zero while this lives, as they do in XLA: a ladder runs through them at a crawl.
struct FlushSubnormal {
#if defined(__SSE2__)
  const unsigned before = _mm_getcsr();
  FlushSubnormal() { _mm_setcsr(before | 0x8040); }
  ~FlushSubnormal() { _mm_setcsr(before); }
#endif
};

template <class T>
void sweep(const Sweep<T>& s, const Parallel& parallel) {
  const Columns<T> cols(s, parallel);
  std::vector<T> two_over_h(s.kernels), minus_one_over_h(s.kernels);
  for (int64_t i = 0; i < s.kernels; ++i) two_over_h[i] = 2 / s.h[i], minus_one_over_h[i] = -1 / s.h[i];
  const auto meets = s.octaves ? (!s.drift ? meet<T, true, false, true> : s.others ? meet<T, true, true, true> : meet<T, true, true, false>)
                               : (!s.drift ? meet<T, false, false, true> : s.others ? meet<T, false, true, true> : meet<T, false, true, false>);
  const int64_t most = std::min(ROWS, up((s.rows + 15) / 16, PACK));
  parallel((s.rows + most - 1) / most, [&](int64_t task) {
    const FlushSubnormal flush;
    Block<T> block(s, most);
    block.start(s, cols, task * most, std::min(most, s.rows - task * most));
    meets(s, cols, block, two_over_h.data(), minus_one_over_h.data());
    finish(s, cols, block);
  });
}

}  // namespace

void run(const Sweep<float>& s, const Parallel& parallel) { sweep(s, parallel); }
void run(const Sweep<double>& s, const Parallel& parallel) { sweep(s, parallel); }

}  // namespace TARGET
}  // namespace polystein
