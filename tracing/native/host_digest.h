// Computes a digest on the host: the compiled form of tracing/digest/host.py, which documents the formula.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

inline constexpr size_t kTileBytes = 8192, kHalfTile = kTileBytes / 8;  // words of 4 bytes
inline constexpr size_t kRanges = 8;

// Formats of values: the bits of infinity, and the number that bits without a sign stand for.
struct Float64 {
  using Bits = uint64_t;
  static constexpr Bits kInfinity = 0x7FF0'0000'0000'0000;
  static double number(Bits bits) { return std::bit_cast<double>(bits); }
};
struct Float32 {
  using Bits = uint32_t;
  static constexpr Bits kInfinity = 0x7F80'0000;
  static float number(Bits bits) { return std::bit_cast<float>(bits); }
};
struct BFloat16 {
  using Bits = uint16_t;
  static constexpr Bits kInfinity = 0x7F80;
  static float number(Bits bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
};
struct Float16 {
  using Bits = uint16_t;
  static constexpr Bits kInfinity = 0x7C00;
  // of finite numbers: float32's exponent has a bias of 112 more, and denormals are multiples of 2**-24
  static float number(Bits bits) {
    const float denormal = std::bit_cast<float>(126u << 23 | bits) - 0.5f;
    return bits < 0x0400 ? denormal : std::bit_cast<float>((uint32_t{bits} << 13) + (112u << 23));
  }
};

inline uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6B;
  x = (x ^ (x >> 13)) * 0xC2B2AE35;
  return x ^ (x >> 16);
}

inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53;
  return x ^ (x >> 33);
}

// The keys of a tile's words, for each of its two sums.
inline const auto kKeys = [] {
  std::array<std::array<uint32_t, 2 * kHalfTile>, 2> keys;
  uint32_t count = 0;
  for (auto& words : keys) {
    for (uint32_t& key : words) key = mix32(++count);
  }
  return keys;
}();

// A norm rounded to six digits; the largest number for infinity. Python's `rounded` has the same bits: both use the
// correctly rounded operations of IEEE 754 only.
inline double rounded(double norm) {
  constexpr long kLeast = -16;  // exponent of the least norm that is rounded
  static const auto powers = [] {
    std::array<double, 308 - kLeast + 1> all;
    for (long i = 0; i < static_cast<long>(all.size()); ++i)
      all[i] = std::strtod(("1e" + std::to_string(i + kLeast)).c_str(), nullptr);
    return all;
  }();
  norm = std::min(norm, std::numeric_limits<double>::max());
  const long exponent = std::upper_bound(powers.begin(), powers.end(), norm) - powers.begin() - 1 + kLeast;
  if (exponent < kLeast) return norm;
  const double scale = powers[std::abs(exponent - 5) - kLeast];
  return exponent <= 5 ? std::nearbyint(norm * scale) / scale : std::nearbyint(norm / scale) * scale;
}

inline void append_hexadecimal(uint64_t number, size_t digits, std::string& text) {
  char written[16];
  for (size_t i = 0; i < digits; ++i) written[i] = "0123456789abcdef"[number >> 4 * (digits - 1 - i) & 15];
  text.append(written, digits);
}

inline constexpr size_t kDigestDigits = 32, kRangeDigits = 3;  // hexadecimal, of a digest, and of one range

// Appends a digest. first, second: the sums over all tiles, of the first keys and of the second keys
inline void append_bits(uint64_t first, uint64_t second, uint64_t nbytes, std::string& text) {
  append_hexadecimal(mix64(first + mix64(2 * nbytes + 1)), kDigestDigits / 2, text);
  append_hexadecimal(mix64(second + mix64(2 * nbytes + 2)), kDigestDigits / 2, text);
}

// Appends the digits of one range. first: the sum over its tiles, of the first keys
inline void append_range(uint64_t first, std::string& text) {
  append_hexadecimal(mix64(first) >> 52, kRangeDigits, text);
}

class HostDigest {
 public:
  uint64_t nan = 0, inf = 0, negative_zero = 0;

  explicit HostDigest(size_t nbytes) : nbytes_(nbytes) {
    const size_t tiles = (nbytes + kTileBytes - 1) / kTileBytes;
    range_tiles_ = std::bit_ceil((tiles + kRanges - 1) / kRanges);
    ranges_ = (tiles + range_tiles_ - 1) / range_tiles_;
  }

  // Adds the bits of the next tile, which zeros fill.
  void add(const uint8_t* tile) {
    uint64_t& first = firsts_[tiles_ / range_tiles_];
    const uint64_t position = ++tiles_ * 0x9E3779B97F4A7C15;
    first += mix64(tile_sum(tile, kKeys[0]) + position);
    second_ += mix64(tile_sum(tile, kKeys[1]) + position);
  }

  // Adds the statistics of a tile's first `nbytes` bytes; zeros fill the tile.
  template <typename Format>
  void tally(const uint8_t* tile, size_t nbytes) {
    for (size_t start = 0; start < nbytes; start += kBlock) tally_block<Format>(tile + start);
  }

  void tally(float number) {
    nan += std::isnan(number);
    inf += std::isinf(number);
    negative_zero += number == 0 && std::signbit(number);
    if (std::isfinite(number)) l1_ += std::abs(number);
  }

  std::string bits() const {
    uint64_t first = 0;
    for (uint64_t one : firsts_) first += one;
    std::string text;
    append_bits(first, second_, nbytes_, text);
    return text;
  }

  std::string tiles() const {
    std::string text;
    for (size_t i = 0; i < ranges_; ++i) append_range(firsts_[i], text);
    return text;
  }

  double l1() const { return rounded(l1_); }

 private:
  static constexpr size_t kBlock = 1024;  // bytes; compilers vectorise loops of constant length

  template <typename Bits>
  static Bits at(const uint8_t* values, size_t i) {
    Bits bits;  // addresses may be unaligned
    std::memcpy(&bits, values + i * sizeof bits, sizeof bits);
    return bits;
  }

  static uint64_t tile_sum(const uint8_t* tile, const std::array<uint32_t, 2 * kHalfTile>& keys) {
    uint64_t sum = 0;
    for (size_t p = 0; p < kHalfTile; ++p) {
      const uint32_t x = at<uint32_t>(tile, p) + keys[p];
      const uint32_t y = at<uint32_t>(tile, p + kHalfTile) + keys[p + kHalfTile];
      sum += uint64_t{x} * y;
    }
    return sum;
  }

  template <typename Format>
  void tally_block(const uint8_t* block) {
    using Bits = typename Format::Bits;
    constexpr size_t kCount = kBlock / sizeof(Bits);
    Bits zeros = 0, special = 0;
    for (size_t i = 0; i < kCount; ++i) {
      const Bits bits = at<Bits>(block, i);
      zeros += bits == kMagnitude<Bits> + 1;
      special += (bits & kMagnitude<Bits>) >= Format::kInfinity;
    }
    negative_zero += zeros;
    if (special > 0) return tally_special<Format>(block);
    double sums[16] = {};  // one sum would wait for each of its additions
    for (size_t start = 0; start < kCount; start += 16) {
      for (size_t i = 0; i < 16; ++i) sums[i] += Format::number(at<Bits>(block, start + i) & kMagnitude<Bits>);
    }
    for (double sum : sums) l1_ += sum;
  }

  // NaN and inf, and the norm of the others.
  template <typename Format>
  void tally_special(const uint8_t* block) {
    using Bits = typename Format::Bits;
    for (size_t i = 0; i < kBlock / sizeof(Bits); ++i) {
      const Bits magnitude = at<Bits>(block, i) & kMagnitude<Bits>;
      inf += magnitude == Format::kInfinity;
      nan += magnitude > Format::kInfinity;
      if (magnitude < Format::kInfinity) l1_ += Format::number(magnitude);
    }
  }

  template <typename Bits>
  static constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() / 2;  // all bits but the sign

  size_t nbytes_, tiles_ = 0, range_tiles_, ranges_;
  uint64_t firsts_[kRanges] = {}, second_ = 0;  // the sums over tiles: of the first keys by range, of the second keys
  double l1_ = 0;
};
