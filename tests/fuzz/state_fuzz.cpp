// Reads any bytes as a saved state, and as several of them that are merged.

#include <lade/error.hpp>
#include <lade/state.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

static std::vector<std::string> texts_in(const lade::state& of) {
  auto texts = of.stages;
  for (const auto& each : of.sources) {
    texts.push_back(each.identity);
    texts.insert(texts.end(), each.order.begin(), each.order.end());
  }
  for (const auto& each : of.chosen) texts.push_back(each.of);
  return texts;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<lade::state> states;
  try {
    while (!text.empty()) {
      auto line = text.substr(0, text.find('\n'));
      auto read = lade::state_from_json(line);
      auto written = lade::to_json(read);
      auto again = lade::state_from_json(written);
      if (lade::to_json(again) != written || texts_in(again) != texts_in(read)) std::abort();
      states.push_back(read);
      text.remove_prefix(line.size() + (line.size() < text.size()));
    }
    (void)lade::merge(states);
  } catch (const lade::error& refused) {
    if (refused.code() != lade::errc::invalid_argument) std::abort();
  }
  return 0;
}
