#include "tar_walk.hpp"

#include <lade/url.hpp>

#include <utility>

#include <fmt/format.h>

namespace lade::detail {

static bool is_damage(const error& failure) {
  auto code = failure.code();
  return code == errc::invalid_data || code == errc::unsupported || code == errc::limit_exceeded;
}

tar_walk::tar_walk(const std::string& archive, io::tar_options options)
    : archive_(without_secrets(archive)), options_(options) {
  if (options.on_damage != io::on_damage::fail && !options.log)
    throw error(errc::invalid_argument, "read " + archive_,
                "on_damage that reports needs a log, which is null");
}

error tar_walk::make_error(errc code, const std::string& reason) const {
  auto behind = before_.empty() ? "" : ", behind " + before_;
  return error(code, "read " + archive_,
               fmt::format("header at byte {}{}: {}", offset_, behind, reason));
}

void tar_walk::report(const error& failure) const {
  if (options_.on_damage == io::on_damage::fail) throw failure;
  options_.log->add(failure);
}

tar_walk::step tar_walk::fault(const tar_fault& broken) {
  report(make_error(broken.code(), broken.what()));
  if (options_.on_damage == io::on_damage::end_archive) return step::over;
  auto padded = broken.skip() ? tar_padded(*broken.skip()) : std::nullopt;
  state_ = padded ? state::at_header : state::lost;
  lost_blocks_ = 0;
  behind_damage_.clear();
  padded_ = padded.value_or(0);
  return padded ? step::skip : step::header;
}

void tar_walk::end(std::uint64_t offset) {
  offset_ = offset;
  if (state_ == state::ended || state_ == state::lost) return;
  if (options_.ignore_zeros && state_ == state::one_zero) return;
  report(make_error(errc::invalid_data,
                    "the archive ends here, without the two zero blocks at its end"));
}

void tar_walk::end(const error& failure) {
  if (!is_damage(failure)) throw failure;
  report(failure);
}

tar_walk::step tar_walk::add_zero_block() {
  if (parser_.expects_header()) {
    parser_.forget();
    report(make_error(errc::invalid_data, "zeros instead of the announced header"));
    if (options_.on_damage == io::on_damage::end_archive) return step::over;
  }
  if (state_ == state::at_header)
    state_ = state::one_zero;
  else if (state_ == state::one_zero && !options_.ignore_zeros)
    state_ = state::ended;
  return step::header;
}

tar_walk::step tar_walk::add_block(std::string_view block, std::uint64_t offset) {
  offset_ = offset;
  if (state_ == state::lost) {
    if (lost_blocks_++ == 0) behind_damage_ = block;
    if (!has_tar_checksum(block)) return step::header;
  } else {
    if (block[0] == 0 && is_zero_block(block)) return add_zero_block();
    if (state_ == state::ended)
      report(make_error(errc::invalid_data,
                        "data after the end of the archive; ignore_zeros reads archives that "
                        "were appended"));
    else if (state_ == state::one_zero && !options_.ignore_zeros)
      report(make_error(errc::invalid_data, "one zero block alone"));
    if (state_ != state::at_header && !options_.ignore_zeros) {
      if (options_.on_damage == io::on_damage::end_archive) return step::over;
      state_ = state::lost;
      lost_blocks_ = 0;
      return add_block(block, offset);
    }
  }
  return add_header(block);
}

tar_walk::step tar_walk::add_header(std::string_view block) {
  try {
    auto found = parser_.add_header(block);
    auto padded = tar_padded(parser_.data_bytes());
    if (!padded) throw tar_fault(errc::invalid_data, "its size is beyond 64 bits");
    padded_ = *padded;
    if (found == tar_parser::found::member) return add_member(block);
    state_ = state::at_header;
    if (found == tar_parser::found::other) lost_extension_ = false;
    return found == tar_parser::found::other ? step::skip : step::extension;
  } catch (const tar_fault& problem) {
    lost_extension_ = false;
    if (state_ == state::lost && !problem.skip()) return step::header;  // not a usable header
    return fault(problem);
  }
}

// Whether `name` may be truncated: after damage, the extension with the full name may be lost.
bool tar_walk::may_lack_its_name(std::string_view name) const {
  return lost_extension_ ||
         (state_ == state::lost && lost_blocks_ > 1 && looks_like_extension(behind_damage_, name));
}

tar_walk::step tar_walk::add_member(std::string_view block) {
  auto& found = parser_.entry();
  if (may_lack_its_name(block.substr(0, 100)))
    throw tar_fault(errc::invalid_data,
                    found.name + " is skipped: the extension of its header is damaged",
                    found.bytes);
  if (found.bytes > options_.max_member_bytes)
    throw tar_fault(errc::limit_exceeded,
                    fmt::format("{} has {} bytes; max_member_bytes is {}", found.name, found.bytes,
                                options_.max_member_bytes),
                    found.bytes);
  state_ = state::at_header;
  entry_ = parser_.take_entry();
  before_ = entry_.name;
  return step::member;
}

tar_walk::step tar_walk::add_extension(std::string_view data) {
  try {
    parser_.add_extension(data.substr(0, parser_.data_bytes()));
    return step::header;
  } catch (const tar_fault& problem) {
    parser_.forget();
    lost_extension_ = true;
    return fault(tar_fault(problem.code(), problem.what(), 0));
  }
}

}  // namespace lade::detail
