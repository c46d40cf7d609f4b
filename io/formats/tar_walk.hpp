// Where a reader of a tar archive is: between members, at the end, or lost behind damage.
//
//   at_header --fault of unknown extent--> lost --valid header--> at_header
//   at_header --zero block--> one_zero --zero block--> ended --anything else--> fault
//
// A fault is thrown or reported, as the policy says. What is done next is in next_step.

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
    header,     // the next block
    member,     // content of padded_bytes() for entry()
    extension,  // data of padded_bytes() for add_extension
    skip,       // pass over padded_bytes()
    over,       // read nothing more
  };

  // Throws error(invalid_argument) for options that cannot work.
  tar_walk(const std::string& archive, io::tar_options options);

  // A block where a header belongs, and its offset.
  step add_block(std::string_view block, std::uint64_t offset);

  // The data of an extension, padded.
  step add_extension(std::string_view data);

  // The archive has no more blocks than up to this offset.
  void end(std::uint64_t offset);

  // What reading it has thrown. Rethrown if it is not damage, or if damage is to be thrown.
  void end(const error& failure);

  tar_entry& entry() noexcept { return entry_; }
  std::uint64_t padded_bytes() const noexcept { return padded_; }

 private:
  enum class state : std::uint8_t { at_header, one_zero, ended, lost };

  step add_zero_block();
  step add_header(std::string_view block);
  step add_member(std::string_view block);
  step fault(const tar_fault& broken);
  void report(const error& failure);
  bool may_lack_its_name(std::string_view name) const;
  error make_error(errc code, const std::string& reason) const;

  std::string archive_;
  io::tar_options options_;
  tar_parser parser_;
  tar_entry entry_;
  std::string before_;  // the name of the last member
  std::uint64_t offset_ = 0;
  std::uint64_t padded_ = 0;
  state state_ = state::at_header;
  bool lost_extension_ = false;  // that of the next member
  std::string behind_damage_;    // the first block behind a damaged header
  std::uint64_t lost_blocks_ = 0;
};

}  // namespace lade::detail
