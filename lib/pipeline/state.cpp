#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/error.hpp>
#include <lade/state.hpp>
#include <lade/support/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace lade {

static constexpr std::uint64_t state_version = 5;

using support::json_of;
using support::json_of_bytes;  // paths may have any bytes

static std::string json_of(const std::vector<std::string>& texts) {
  std::vector<std::string> values;
  for (auto& text : texts) values.push_back(json_of_bytes(text));
  return support::json_array(values);
}

static std::string json_of(const state::source& source) {
  const std::pair<const char*, std::string> members[] = {
      {"begin", std::to_string(source.begin)},
      {"items", std::to_string(source.items)},
      {"identity", json_of_bytes(source.identity)},
      {"listed", std::to_string(source.listed)},
      {"order", json_of(source.order)},
      {"first", std::to_string(source.first)},
      {"since", json_of(source.since)},
  };
  return support::json_object(members);
}

static std::string json_of(const std::vector<state::source>& sources) {
  std::vector<std::string> values;
  for (auto& each : sources) values.push_back(json_of(each));
  return support::json_array(values);
}

static std::string json_of(const std::vector<state::choices>& chosen) {
  std::vector<std::string> values;
  for (auto& each : chosen) {
    const std::pair<const char*, std::string> members[] = {
        {"of", json_of_bytes(each.of)},
        {"delivered", json_of(each.delivered)},
        {"items", std::to_string(each.items)},
    };
    values.push_back(support::json_object(members));
  }
  return support::json_array(values);
}

std::string to_json(const state& saved) {
  std::vector<std::pair<const char*, std::string>> members = {
      {"lade_state", std::to_string(state_version)},
      {"epoch", std::to_string(saved.epoch)},
      {"seed", std::to_string(saved.seed)},
      {"stages", json_of(saved.stages)},
      {"delivered", json_of(saved.delivered)},
      {"own", json_of(saved.own)},
      {"rank", std::to_string(saved.rank)},
      {"world", std::to_string(saved.world)},
      {"sources", json_of(saved.sources)},
      {"chosen", json_of(saved.chosen)},
      {"open", json_of(saved.open)},
      {"parts", std::to_string(saved.parts)},
      {"open_members", std::to_string(saved.open_members)},
  };
  if (saved.steps > 0)
    members.insert(members.end(), {{"steps", std::to_string(saved.steps)},
                                   {"steps_taken", std::to_string(saved.steps_taken)},
                                   {"steps_repeated", std::to_string(saved.steps_repeated)}});
  return support::json_object(members);
}

namespace detail {

// Throws unless a number is less than most_positions.
static void require_position(std::uint64_t number, std::string_view doing) {
  if (number >= most_positions)
    throw error(errc::invalid_argument, doing,
                fmt::format("{} is beyond all positions that sources have", number));
}

static void require_positions(const lineage& of, std::string_view doing) {
  if (!of.empty()) require_position(of.ranges().back().last, doing);
}

void require_possible(const state& saved, std::string_view doing) {
  require_position(saved.world, doing);
  if (saved.rank >= saved.world)
    throw error(
        errc::invalid_argument, doing,
        fmt::format("it is of rank {} of {}, and ranks count from 0", saved.rank, saved.world));
  require_positions(saved.delivered, doing);
  require_positions(saved.own, doing);
  require_positions(saved.open, doing);
  require_position(saved.parts, doing);
  if (saved.parts > 0 && saved.open.empty())
    throw error(errc::invalid_argument, doing,
                "it has delivered parts of an item without positions");
  if (saved.steps_taken > saved.steps || saved.steps_repeated > saved.steps_taken)
    throw error(errc::invalid_argument, doing, "it has taken more steps than there are");
  for (auto& source : saved.sources) {
    require_position(source.begin, doing);
    require_position(source.first, doing);
    require_positions(source.since, doing);
  }
  for (auto& choices : saved.chosen) require_positions(choices.delivered, doing);
}

// Reads the subset of JSON (RFC 8259) that states use: one object whose members are whole numbers,
// strings, and lists of strings, of pairs of numbers, or of objects with such members.
class state_reader {
 public:
  explicit state_reader(std::string_view text) noexcept : text_(text) {}

  state read() {
    state result;
    read_members("a state", {
                                {"lade_state", &version_},
                                {"epoch", &result.epoch},
                                {"seed", &result.seed},
                                {"stages", &result.stages},
                                {"delivered", &result.delivered},
                                {"own", &result.own},
                                {"rank", &result.rank},
                                {"world", &result.world},
                                {"sources", &result.sources},
                                {"chosen", &result.chosen},
                                {"open", &result.open},
                                {"parts", &result.parts},
                                {"open_members", &result.open_members},
                                {"steps", &result.steps},
                                {"steps_taken", &result.steps_taken},
                                {"steps_repeated", &result.steps_repeated},
                            });
    skip_space();
    if (at_ != text_.size()) fail("more text than a state");
    if (version_ != state_version) fail_version();
    require_possible(result, "read a state");
    return result;
  }

 private:
  // The destination of the value of a member.
  using target = std::variant<std::uint64_t*, std::string*, lineage*, std::vector<std::string>*,
                              std::vector<state::source>*, std::vector<state::choices>*>;

  void read_members(const std::string& of, const std::map<std::string_view, target>& targets) {
    std::set<std::string> names;
    expect('{');
    do {
      auto name = read_string();
      auto found = targets.find(name);
      if (found == targets.end()) fail_member(name, of);
      if (!names.insert(name).second) fail(fmt::format("\"{}\" appears twice", name));
      expect(':');
      std::visit([this](auto* into) { read_into(*into); }, found->second);
    } while (accept(','));
    expect('}');
  }

  void read_into(std::uint64_t& number) { number = read_number(); }
  void read_into(std::string& text) { text = read_string(); }
  void read_into(lineage& positions) { positions = read_ranges(); }
  void read_into(std::vector<std::string>& texts) { texts = read_strings(); }
  void read_into(std::vector<state::source>& sources) {
    read_list(sources, [&](state::source& source) {
      read_members("a source", {{"begin", &source.begin},
                                {"items", &source.items},
                                {"identity", &source.identity},
                                {"listed", &source.listed},
                                {"order", &source.order},
                                {"first", &source.first},
                                {"since", &source.since}});
      if (sources.size() > 1 && source.begin <= sources[sources.size() - 2].begin)
        fail("sources that do not ascend");
    });
  }
  void read_into(std::vector<state::choices>& chosen) {
    read_list(chosen, [&](state::choices& each) {
      read_members("choices",
                   {{"of", &each.of}, {"delivered", &each.delivered}, {"items", &each.items}});
    });
  }

  template <class T, class Read>
  void read_list(std::vector<T>& list, Read read_into_element) {
    list.clear();
    expect('[');
    if (accept(']')) return;
    do read_into_element(list.emplace_back());
    while (accept(','));
    expect(']');
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::invalid_argument, "read a state",
                fmt::format("{} (at character {})", what, at_));
  }

  [[noreturn]] void fail_version() const {
    fail(fmt::format("version {} of states, not {}", version_, state_version));
  }

  // In a state of another version, reports the version instead of the unknown member.
  [[noreturn]] void fail_member(const std::string& name, const std::string& of) const {
    if (version_ != 0 && version_ != state_version) fail_version();
    fail(fmt::format("\"{}\" is not part of {}", name, of));
  }

  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  bool accept(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string("expected ") + wanted);
  }

  std::uint64_t read_number() {
    skip_space();
    std::uint64_t number = 0;
    auto* end = text_.data() + text_.size();
    auto [next, failure] = std::from_chars(text_.data() + at_, end, number);
    if (failure != std::errc()) fail("expected a whole number");
    at_ = static_cast<std::size_t>(next - text_.data());
    return number;
  }

  std::string read_string() {
    expect('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') result += read_character();
    if (at_ == text_.size()) fail("a string without an end");
    ++at_;
    return result;
  }

  char read_character() {
    char c = text_[at_++];
    if (c != '\\') return c;
    if (at_ == text_.size()) fail("a string without an end");
    c = text_[at_++];
    if (c == '"' || c == '\\') return c;
    unsigned code = 0;
    auto digits = text_.substr(std::min(at_, text_.size()), 4);
    auto [next, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    const bool is_control = code < 0x20;
    const bool is_byte = code >= 0xdc80 && code <= 0xdcff;  // see json_of_bytes
    if (c != 'u' || failure != std::errc() || next != digits.data() + 4 || !(is_control || is_byte))
      fail("an escape that states do not have");
    at_ += 4;
    return static_cast<char>(code & 0xff);
  }

  std::vector<std::string> read_strings() {
    std::vector<std::string> result;
    expect('[');
    if (accept(']')) return result;
    do result.push_back(read_string());
    while (accept(','));
    expect(']');
    return result;
  }

  lineage read_ranges() {
    lineage result;
    expect('[');
    if (accept(']')) return result;
    do {
      expect('[');
      auto first = read_number();
      expect(',');
      auto last = read_number();
      expect(']');
      if (last < first || (!result.empty() && first <= result.ranges().back().last))
        fail("ranges that do not ascend");
      result.add({first, last});
    } while (accept(','));
    expect(']');
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t version_ = 0;  // 0: not read yet
};

}  // namespace detail

state state_from_json(std::string_view text) { return detail::state_reader(text).read(); }

}  // namespace lade
