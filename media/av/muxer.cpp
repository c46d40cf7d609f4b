#include <lade/error.hpp>
#include <lade/media/av/muxer.hpp>

#include "byte_output.hpp"
#include "format_writer.hpp"

#include <utility>

namespace lade::media {

class muxer::state {
 public:
  state(std::unique_ptr<byte_output> output, std::string name, const mux_options& options)
      : file(std::move(output), name, find_output_format(options.format, name), options.options) {}

  memory_output* memory = nullptr;  // the output, if it is in memory
  format_writer file;
};

static std::unique_ptr<byte_output> new_output(const std::string& path,
                                               const mux_options& options) {
  (void)find_output_format(options.format, path);  // throws before a file is created
  return std::make_unique<file_output>(path);
}

muxer::muxer(std::string path, const mux_options& options)
    : state_(std::make_unique<state>(new_output(path, options), path, options)) {}

muxer::muxer(std::unique_ptr<state> of) noexcept : state_(std::move(of)) {}

muxer muxer::in_memory(const mux_options& options) {
  auto output = std::make_unique<memory_output>();
  auto* memory = output.get();
  auto made = std::make_unique<state>(std::move(output), "memory", options);
  made->memory = memory;
  return muxer(std::move(made));
}

muxer::muxer(muxer&&) noexcept = default;
muxer& muxer::operator=(muxer&&) noexcept = default;
muxer::~muxer() = default;

int muxer::add(const stream_info& stream) { return state_->file.add(stream); }
void muxer::set_metadata(const metadata& of_file) { state_->file.set_metadata(of_file); }
void muxer::set_metadata(int stream, const metadata& of_stream) {
  state_->file.set_metadata(stream, of_stream);
}
void muxer::set_orientation(int stream, display_orientation orientation) {
  state_->file.set_orientation(stream, orientation);
}
void muxer::write(int stream, const packet& next) { state_->file.write(stream, next); }
void muxer::finish() { state_->file.finish(); }

buffer muxer::content() const {
  if (state_->memory == nullptr || !state_->file.finished())
    throw error(errc::invalid_argument, "take a media file out of memory",
                "it is in memory after finish() only");
  return state_->memory->content();
}

}  // namespace lade::media
