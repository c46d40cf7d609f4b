// The XML that object stores and token services answer with: elements by name. Attributes are
// passed over; comments and CDATA, which none of them sends, are not known.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lade::io::http {

// A text that must outlive it.
class xml_text {
 public:
  // `doing`: what errors say was done with it, "read a listing of objects".
  xml_text(std::string_view text, std::string_view doing) noexcept : text_(text), doing_(doing) {}

  // The content of the first element of that name, at any depth; nothing if there is none. Throws
  // error(invalid_data) if it does not end.
  std::optional<xml_text> find(std::string_view name) const;

  // The same, but throws error(invalid_data) if there is none: the root of a document that is
  // whole.
  xml_text require(std::string_view name) const;

  // As find, and passes over it and all before it.
  std::optional<xml_text> take(std::string_view name);

  // The text with its entities and character references replaced (XML 1.0, sections 4.1 and 4.6).
  // Throws error(invalid_data) for others.
  std::string plain() const;

  // plain() of the first element of that name; empty if there is none.
  std::string value(std::string_view name) const;

  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  std::string_view text_;
  std::string_view doing_;
};

}  // namespace lade::io::http
