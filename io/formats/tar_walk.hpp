// The state machine of a tar reader, without I/O. Each call returns the next step.
//
//   at_header --fault of unknown extent--> lost --valid header--> at_header
//   at_header --zero block--> one_zero --zero block--> ended
//   one_zero, ended --any other block is a fault--> lost
//
// A reader that is lost skips blocks until one is a valid header. With ignore_zeros, zero blocks do
// not end the archive, and one_zero accepts a header. A fault is thrown or reported, by the policy
// on_damage.

#pragma once

#include <lade/error.hpp>
#include <lade/io/formats/tar.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tar_header.hpp"

namespace lade::detail {

class tar_walk {
 public:
  enum class step : std::uint8_t {
    header,     // read a block, and call add_block
    member,     // read padded_bytes(): the content of entry()
    extension,  // read padded_bytes(), and call add_extension
    skip,       // skip padded_bytes()
    over,       // stop reading
  };

  // Throws error(invalid_argument) for invalid options.
  tar_walk(const std::string& archive, io::tar_options options);

  // `block`: read where a header is expected, at `offset`.
  step add_block(std::string_view block, std::uint64_t offset);

  // `data`: of an extension, with its padding.
  step add_extension(std::string_view data);

  // Call at the end of the archive, which is at `offset`.
  void end(std::uint64_t offset);

  // Call with an exception of reading. Rethrows it, unless it is damage that is only reported.
  void end(const error& failure);

  tar_entry& entry() noexcept { return entry_; }
  std::uint64_t padded_bytes() const noexcept { return padded_; }

 private:
  enum class state : std::uint8_t { at_header, one_zero, ended, lost };

  step add_zero_block();
  step add_header(std::string_view block);
  step add_member(std::string_view block);
  step fault(const tar_fault& broken);
  void report(const error& failure) const;
  bool may_lack_its_name(std::string_view name) const;
  error make_error(errc code, const std::string& reason) const;

  std::string archive_;
  io::tar_options options_;
  tar_parser parser_;
  tar_entry entry_;
  std::string before_;  // the name of the previous member
  std::uint64_t offset_ = 0;
  std::uint64_t padded_ = 0;
  state state_ = state::at_header;
  bool lost_extension_ = false;  // an extension of the next member was lost
  std::string behind_damage_;    // the first block after a damaged header
  std::uint64_t lost_blocks_ = 0;
};

}  // namespace lade::detail
