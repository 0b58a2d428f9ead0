// A sweep over all pairs of points for Gaussian kernels exp(-r^2 / h_i): what it is given, and what it leaves behind.
#pragma once

#include <cstdint>
#include <functional>

namespace polystein {

// Runs f(0), ..., f(tasks - 1), in any order and at once.
using Parallel = std::function<void(int64_t tasks, const std::function<void(int64_t)>& f)>;

// Rows y_i with scores, columns x_j with scores, kernels k_i. Matrices lie row by row.
template <class T>
struct Sweep {
  int64_t rows, cols, dim, kernels;
  const T *row_x, *row_scores;
  const int32_t* row_id;
  const T *col_x, *col_scores, *drive;  // the scores that meet a row's in a product, and those that drive
  const int32_t* col_id;
  const bool* live;
  const T *h, *value, *first;  // bandwidths in ascending order; the weights of k_i in both mixtures
  bool octaves;                // h_i = 2 h_{i-1}
  T* drift;                    // sum_j sum_i value_i k_i s_j + first_i k_i (x_j - y), or null
  T *others, *squares;         // per row and kernel: sums of u_i and u_i^2 over the other live points, or null
};

#define POLYSTEIN_TARGET(name)                                     \
  namespace name {                                                 \
  void run(const Sweep<float>& sweep, const Parallel& parallel);   \
  void run(const Sweep<double>& sweep, const Parallel& parallel);  \
  }
POLYSTEIN_TARGET(plain)
POLYSTEIN_TARGET(avx2)
POLYSTEIN_TARGET(avx512)

}  // namespace polystein
