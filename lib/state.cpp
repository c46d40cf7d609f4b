#include <lade/detail/index.hpp>
#include <lade/detail/json.hpp>
#include <lade/error.hpp>
#include <lade/state.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>
#include <variant>

namespace lade {

static constexpr std::uint64_t state_version = 3;

using detail::json_of;

static std::string json_of(const std::vector<std::string>& texts) {
  std::vector<std::string> values;
  for (auto& text : texts) values.push_back(json_of(text));
  return detail::json_array(values);
}

static std::string json_of(const state::source& source) {
  const std::pair<const char*, std::string> members[] = {
      {"begin", std::to_string(source.begin)}, {"items", std::to_string(source.items)},
      {"identity", json_of(source.identity)},  {"listed", std::to_string(source.listed)},
      {"order", json_of(source.order)},        {"first", std::to_string(source.first)},
      {"since", json_of(source.since)},
  };
  return detail::json_object(members);
}

static std::string json_of(const std::vector<state::source>& sources) {
  std::vector<std::string> values;
  for (auto& each : sources) values.push_back(json_of(each));
  return detail::json_array(values);
}

static std::string json_of(const std::vector<state::choices>& chosen) {
  std::vector<std::string> values;
  for (auto& each : chosen) {
    const std::pair<const char*, std::string> members[] = {
        {"of", json_of(each.of)},
        {"delivered", json_of(each.delivered)},
        {"items", std::to_string(each.items)},
    };
    values.push_back(detail::json_object(members));
  }
  return detail::json_array(values);
}

std::string to_json(const state& saved) {
  const std::pair<const char*, std::string> members[] = {
      {"lade_state", std::to_string(state_version)},
      {"epoch", std::to_string(saved.epoch)},
      {"seed", std::to_string(saved.seed)},
      {"stages", json_of(saved.stages)},
      {"delivered", json_of(saved.delivered)},
      {"rank", std::to_string(saved.rank)},
      {"world", std::to_string(saved.world)},
      {"sources", json_of(saved.sources)},
      {"chosen", json_of(saved.chosen)},
      {"open", json_of(saved.open)},
      {"parts", std::to_string(saved.parts)},
  };
  return detail::json_object(members);
}

namespace detail {

// Reads the part of JSON (RFC 8259) that states are made of: one object whose members are whole
// numbers, lists of strings, of pairs of numbers, or of objects with such members.
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
                                {"rank", &result.rank},
                                {"world", &result.world},
                                {"sources", &result.sources},
                                {"chosen", &result.chosen},
                                {"open", &result.open},
                                {"parts", &result.parts},
                            });
    skip_space();
    if (at_ != text_.size()) fail("more text than a state");
    if (version_ != state_version) fail_version();
    if (result.rank >= result.world) fail("no rank of its world");
    return result;
  }

 private:
  // Where the value of a member goes.
  using target = std::variant<std::uint64_t*, std::string*, lineage*, std::vector<std::string>*,
                              std::vector<state::source>*, std::vector<state::choices>*>;

  void read_members(const std::string& of, const std::map<std::string_view, target>& targets) {
    expect('{');
    do {
      auto name = read_string();
      auto found = targets.find(name);
      if (found == targets.end()) fail_member(name, of);
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
                what + " (at character " + std::to_string(at_) + ")");
  }

  [[noreturn]] void fail_version() const {
    fail("version " + std::to_string(version_) + " of states, not " +
         std::to_string(state_version));
  }

  // What another version has more is no mistake in the text.
  [[noreturn]] void fail_member(const std::string& name, const std::string& of) const {
    if (version_ > state_version) fail_version();
    fail("\"" + name + "\" is not part of " + of);
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
    if (c != 'u' || failure != std::errc() || next != digits.data() + 4 || code >= 0x20)
      fail("an escape that states do not have");
    at_ += 4;
    return static_cast<char>(code);
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
  std::uint64_t version_ = 0;  // 0 until it has been read
};

}  // namespace detail

state state_from_json(std::string_view text) { return detail::state_reader(text).read(); }

namespace detail {

// The states of all ranks of one run, in the order of the ranks.
class merger {
 public:
  explicit merger(std::span<const state> ranks) : ranks_(ranks.begin(), ranks.end()) {
    if (ranks.empty()) fail("there are none");
    std::ranges::sort(ranks_, {}, &state::rank);
    for (auto& each : ranks_) add_sources_of(each);
    for (std::uint64_t i = 0; i < ranks_.size(); ++i) check(ranks_[i], i);
    if (ranks_.size() != ranks_[0].world)
      fail(std::to_string(ranks_[0].world) + " ranks are needed, each once");
  }

  state merged() const {
    auto result = ranks_[0];
    gaps undelivered(result.delivered);
    std::uint64_t apart = 0;
    for (std::size_t i = 0; i < result.sources.size(); ++i)
      for_each_stretch(i, [&](lineage::range steps, const sources& done) {
        bool by_all = done.size() == ranks_.size();
        auto count = by_all ? 1 : steps.last - steps.first + 1;
        if (!by_all && (apart += count * done.size()) > most_apart) fail("they are too far apart");
        for (auto step = steps.first; count-- > 0; ++step)
          for (auto* source : done) {
            auto first = source->first + step * result.world;
            auto last = by_all
                            ? first + (steps.last - steps.first) * result.world + result.world - 1
                            : first;
            result.delivered.add({undelivered.at(first), undelivered.at(last)});
            if (by_all) break;  // who is first: all others are in between
          }
      });
    result.world = 1;
    if (ranks_.size() > 1) result.chosen = {};  // those of each rank are of its own items
    for (auto& source : result.sources) {
      source.first = 0;
      source.since = {};
    }
    return result;
  }

 private:
  static constexpr std::uint64_t most_apart = 1 << 20;                 // items
  static constexpr std::uint64_t most_items = std::uint64_t{1} << 62;  // of all ranks, with repeats

  [[noreturn]] static void fail(const std::string& why) {
    throw error(errc::invalid_argument, "merge states", why);
  }

  // Adds to all ranks the sources that one has begun and they have not.
  void add_sources_of(const state& one) {
    for (auto& source : std::vector(one.sources))
      for (auto& each : ranks_) {
        auto place =
            std::ranges::lower_bound(each.sources, source.begin, {}, &state::source::begin);
        if (place != each.sources.end() && place->begin == source.begin) continue;
        auto same = source;
        same.first = source.first - one.rank + each.rank;
        same.since = {};
        each.sources.insert(place, std::move(same));
      }
  }

  void check(const state& each, std::uint64_t rank) const {
    auto& first = ranks_[0];
    auto require_same = [](bool same, const char* what) {
      if (!same) fail(std::string("they differ in ") + what);
    };
    require_same(each.epoch == first.epoch, "the epoch");
    require_same(each.seed == first.seed, "the seed");
    require_same(each.stages == first.stages, "the stages");
    require_same(std::ranges::equal(each.sources, first.sources, {}, &state::source::items,
                                    &state::source::items),
                 "the items of the source");
    require_same(std::ranges::equal(each.sources, first.sources, {}, &state::source::identity,
                                    &state::source::identity),
                 "the data set");
    require_same(std::ranges::equal(each.sources, first.sources, {}, &state::source::order,
                                    &state::source::order),
                 "the order of the source");
    require_same(each.world == first.world, "the number of ranks");
    require_same(each.delivered == first.delivered, "what they began with");
    if (each.rank != rank) fail("rank " + std::to_string(rank) + " is missing");
    if (each.parts > 0) fail("rank " + std::to_string(rank) + " is amid the parts of an item");
    for (std::size_t i = 0; i < each.sources.size(); ++i) {
      auto& source = each.sources[i];
      require_same(source.first == first.sources[i].first + rank, "what they were dealt");
      auto steps = source.since.ranges();
      if (!steps.empty() && steps.back().last > most_items / each.world)
        fail("rank " + std::to_string(rank) + " has delivered more than there is");
    }
  }

  using sources = std::vector<const state::source*>;

  // Calls `visit` with stretches of steps through the i-th source, and that source on the ranks
  // that have done all of these, where no others have done any of them; not for what no rank has
  // done.
  template <class Visit>
  void for_each_stretch(std::size_t i, Visit visit) const {
    std::vector<std::uint64_t> ends;
    for (auto& each : ranks_)
      for (auto& range : each.sources[i].since.ranges())
        ends.insert(ends.end(), {range.first, range.last + 1});
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (std::size_t k = 1; k < ends.size(); ++k) {
      sources done;
      for (auto& each : ranks_)
        if (each.sources[i].since.contains(ends[k - 1])) done.push_back(&each.sources[i]);
      if (!done.empty()) visit(lineage::range{ends[k - 1], ends[k] - 1}, done);
    }
  }

  std::vector<state> ranks_;
};

}  // namespace detail

state merge(std::span<const state> ranks) { return detail::merger(ranks).merged(); }

}  // namespace lade
