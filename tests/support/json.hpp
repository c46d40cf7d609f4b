// Checks whether a text is JSON.

#pragma once

#include <string_view>

namespace lade::test {

// Accepts exactly one value by the grammar of RFC 8259. An object may have the same name twice.
class json_reader {
 public:
  explicit json_reader(std::string_view text) : rest_(text) {}

  bool reads_all() {
    bool good = value();
    skip_space();
    return good && rest_.empty();
  }

 private:
  bool value() {
    skip_space();
    if (rest_.starts_with('{')) return list('}', [this] { return member(); });
    if (rest_.starts_with('[')) return list(']', [this] { return value(); });
    if (rest_.starts_with('"')) return string();
    return take("null") || take("true") || take("false") || number();
  }

  template <class Element>
  bool list(char end, Element element) {
    rest_.remove_prefix(1);
    skip_space();
    if (take({&end, 1})) return true;
    do {
      if (!element()) return false;
      skip_space();
    } while (take(","));
    return take({&end, 1});
  }

  bool member() {
    skip_space();
    if (!string()) return false;
    skip_space();
    return take(":") && value();
  }

  bool string() {
    if (!take("\"")) return false;
    while (!take("\""))
      if (take("\\") ? !escape() : !plain()) return false;
    return true;
  }

  bool plain() {
    if (rest_.empty() || static_cast<unsigned char>(rest_[0]) < 0x20) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool escape() {
    if (take("u")) return hex() && hex() && hex() && hex();
    return take_one_of("\"\\/bfnrt");
  }
  bool hex() { return take_one_of("0123456789abcdefABCDEF"); }

  bool number() {
    take("-");
    if (!take("0") && !digits()) return false;
    if (take(".") && !digits()) return false;
    if (!take_one_of("eE")) return true;
    take_one_of("+-");
    return digits();
  }
  bool digits() {
    if (!take_one_of("0123456789")) return false;
    while (take_one_of("0123456789")) {}
    return true;
  }

  void skip_space() {
    while (take_one_of(" \t\r\n")) {}
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool take_one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_[0]) == characters.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
};

inline bool is_json(std::string_view text) { return json_reader(text).reads_all(); }

}  // namespace lade::test
