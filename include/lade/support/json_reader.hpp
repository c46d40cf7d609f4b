// json_reader: a strict JSON parser (RFC 8259). It also refuses objects with duplicate names, and
// strings that are not UTF-8.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lade::support {

// Reads one value after the other from a text, without building a tree:
//
//   json_reader json(text, "index.json");
//   json.object([&](const std::string& name) {
//     if (name == "version") version = json.integer(); else json.skip();
//   });
//   json.end();
//
// - Every function except end() and next() reads one whole value.
// - Errors: error(invalid_data), naming the text and the byte, for another kind of value and for
//   text that is not JSON.
// - Limits: nesting up to max_depth; memory proportional to the size of the text.
// - Lifetime: the text and its name must outlive the reader.
class json_reader {
 public:
  enum class kind : std::uint8_t { object, array, string, number, boolean, null };
  static constexpr unsigned max_depth = 64;

  // `line`: the number of the line, for errors, if the text is a line of a file; otherwise 0.
  json_reader(std::string_view text, std::string_view name, std::uint64_t line = 0)
      : text_(text), name_(name), line_(line) {}

  // The kind of the next value, by its first character.
  kind next();

  std::string string();
  bool boolean();
  void null();
  double number();
  std::int64_t integer();            // a number without fraction and exponent
  std::uint64_t unsigned_integer();  // the same, not negative

  // An integer if the number has neither fraction nor exponent.
  std::variant<std::int64_t, double> any_number();

  // Skips a value, which must be valid. Returns its text.
  std::string_view skip();

  // Calls `member` with each name in an object. `member` must read the value.
  template <class F>
  void object(F member) {
    std::vector<std::string> names;
    for (bool more = enter('{', '}'); more; more = go_on('}')) {
      names.push_back(member_name());
      member(std::as_const(names.back()));
    }
    require_unique(std::move(names));
  }

  // Calls `element` for each element of an array. `element` must read the value.
  template <class F>
  void array(F element) {
    for (bool more = enter('[', ']'); more; more = go_on(']')) element();
  }

  // Throws error(invalid_data) if anything but white space is left.
  void end();

  // Throws error(invalid_data) naming the text and the next byte.
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

}  // namespace lade::support
