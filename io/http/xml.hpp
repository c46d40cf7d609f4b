// Parses the XML of object stores and token services: elements by name. Attributes are ignored.
// Comments and CDATA are not supported; these services do not send them.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lade::io::http {

// A view of a text, which must outlive it.
class xml_text {
 public:
  // `doing`: the operation, for errors: "read a listing of objects".
  xml_text(std::string_view text, std::string_view doing) noexcept : text_(text), doing_(doing) {}

  // The content of the first element of that name, at any depth; nothing if there is none. Throws
  // error(invalid_data) if the element has no end.
  std::optional<xml_text> find(std::string_view name) const;

  // The same, but throws error(invalid_data) if there is none. For the root of a complete document.
  xml_text require(std::string_view name) const;

  // As find, and removes the element and everything before it.
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
