// Keys of tables: numbers of 64 bits in a row.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <vector>

using Words = std::vector<int64_t>;               // a key that is kept
using Key = c10::SmallVector<int64_t, 48>;        // a key that is built, mostly without an allocation
using WordsView = c10::ArrayRef<int64_t>;

inline WordsView view(const Key& key) { return {key.data(), key.size()}; }
inline Words words(const Key& key) { return {key.begin(), key.end()}; }

struct WordsHash {
  using is_transparent = void;
  size_t operator()(WordsView words) const {
    uint64_t hash = words.size();
    for (int64_t word : words) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct WordsEqual {
  using is_transparent = void;
  bool operator()(WordsView a, WordsView b) const { return a == b; }
};
