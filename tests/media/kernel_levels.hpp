// The instruction sets whose kernels are compared with plain code.

#pragma once

#include "../../media/simd.hpp"
#include "../support/seed.hpp"

#include <lade/random.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace lade::media {

// Whether Linux says that the CPU has what the kernels of a level are compiled for.
inline bool cpu_has(simd level) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; flags.empty() && std::getline(file, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line);
      for (std::string word; words >> word;) flags.insert(word);
    }
  const auto has = [&](std::initializer_list<const char*> names) {
    for (const auto* name : names)
      if (!flags.contains(name)) return false;
    return true;
  };
  if (!has({"avx2", "fma", "f16c", "bmi2"})) return false;
  return level == simd::avx2 ||
         has({"avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512vbmi", "avx512_vbmi2"});
}

// Every level beyond plain C++. Skipped only where the CPU lacks it; fails where the library does
// not find what the CPU has.
class kernel_levels : public testing::TestWithParam<simd> {
 protected:
  void SetUp() override {
    if (!cpu_has(GetParam())) GTEST_SKIP() << "not on this machine";
    ASSERT_GE(best_simd(), GetParam());
    const auto seed = test::new_seed();
    RecordProperty("seed", std::to_string(seed));
    draw = random(seed);
    seed_text = "seed " + std::to_string(seed);
  }

  int below(int bound) { return static_cast<int>(draw.below(static_cast<std::uint64_t>(bound))); }

  template <class T>
  std::vector<T> noise(int count, int bound) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = static_cast<T>(below(bound));
    return values;
  }

  static constexpr int rounds = 300;
  random draw;
  std::string seed_text;
};

inline std::string name_of_level(const testing::TestParamInfo<simd>& level) {
  return level.param == simd::avx2 ? "Avx2" : "Avx512";
}

template <class T>
std::vector<T> first_of(const std::vector<T>& values, int count) {
  return {values.begin(), values.begin() + count};
}

}  // namespace lade::media
