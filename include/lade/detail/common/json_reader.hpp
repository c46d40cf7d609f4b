// Reading JSON (RFC 8259), strictly: nothing that the grammar lacks, no name twice in an object, no
// text that is not UTF-8.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lade::detail {

// Reads one value after the other from a text, without a tree:
//
//   json_reader json(text, "index.json");
//   json.object([&](const std::string& name) {
//     if (name == "version") version = json.integer(); else json.skip();
//   });
//   json.end();
//
// Every function but end() and next() reads one whole value, and throws error(invalid_data) that
// names the text and the byte if it is of another kind. Memory is bounded by the text's size, and
// nesting by max_depth. The text and its name must outlive the reader.
class json_reader {
 public:
  enum class kind : std::uint8_t { object, array, string, number, boolean, null };
  static constexpr unsigned max_depth = 64;

  // `line`: the number of the line that the text is, or 0 if it is more than a line.
  json_reader(std::string_view text, std::string_view name, std::uint64_t line = 0)
      : text_(text), name_(name), line_(line) {}

  // Of which kind the next value is, by its first character.
  kind next();

  std::string string();
  bool boolean();
  void null();
  double number();
  std::int64_t integer();            // a number without fraction and exponent, in 64 bits
  std::uint64_t unsigned_integer();  // the same, not negative

  // An integer if the number has neither fraction nor exponent.
  std::variant<std::int64_t, double> any_number();

  // Passes over a value, which is checked. Returns its text.
  std::string_view skip();

  // Calls `member` with each name in an object. It must read the value.
  template <class F>
  void object(F member) {
    std::vector<std::string> names;
    for (bool more = enter('{', '}'); more; more = go_on('}')) {
      names.push_back(member_name());
      member(std::as_const(names.back()));
    }
    require_unique(std::move(names));
  }

  // Calls `element` for each element of an array. It must read the value.
  template <class F>
  void array(F element) {
    for (bool more = enter('[', ']'); more; more = go_on(']')) element();
  }

  // Throws error(invalid_data) if there is anything but white space left.
  void end();

  // Throws error(invalid_data) naming the text and the byte that is read next.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  bool enter(char begin, char end);
  bool go_on(char end);
  std::string member_name();
  void require_unique(std::vector<std::string> names) const;

  void skip_space() noexcept;
  bool take(char wanted) noexcept;
  bool take(std::string_view wanted) noexcept;
  void take_digits();
  std::string_view number_text();
  void read_escape(std::string& into);
  char32_t read_hex();

  std::string_view text_;
  std::string_view name_;
  std::uint64_t line_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
};

}  // namespace lade::detail
