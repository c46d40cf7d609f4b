// Filter graphs of FFmpeg: frames in, frames out.
//
// A separate module, because loading libavfilter takes some 20 ms at the start of a program.

#pragma once

#include <lade/media/av/frame.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// An input or output of a graph: an end that is not linked.
struct graph_end {
  std::string label;  // "a" for "[a]"; empty if the text has none
  stream_kind kind;   // video or audio
};

// A graph in the syntax of FFmpeg's `-filter_complex`: "scale=224:224,format=rgb24",
// "[a][b]overlay[out]", "showwavespic=s=640x120". filter_text.hpp has functions that return such
// text. Inputs and outputs are the ends that are not linked, in the order of the text.
//
// Format. The graph is configured for the format of the first frames, once every input has received
// one; until then, frames wait. If a frame has another format, the graph ends, delivers the frames
// that it still holds, and is configured again. Filter contexts are not reused for the next stream,
// because FFmpeg cannot reset them.
//
// One thread at a time. FFmpeg allocates the memory of frames. Frames that receive() returns count
// to the budget of the run whose stage calls it.
//
// Errors name the graph's text, and the filter if it is known:
// - error(invalid_argument) for an unknown filter or option;
// - error(unsupported) for a filter that could open files, a library or a socket, such as movie,
//   subtitles or drawtext. A filter is refused if it has a text option that is not known to be
//   harmless, even if the option is not used;
// - FFmpeg's error if a graph fails;
// - error(stopped) if the stage that sends a frame is cancelled.
//
// Endless graphs. A graph may return frames forever ("loop=-1:2"), so the caller of receive() must
// limit their number. If the format changes or a new stream begins, each output must end within
// 100,000 frames; otherwise error(limit_exceeded). A graph that runs forever and returns nothing
// ("loop=-1:2,select=0") is not detected.
class filter_graph {
 public:
  explicit filter_graph(std::string_view text);
  filter_graph(filter_graph&&) noexcept;
  filter_graph& operator=(filter_graph&&) noexcept;
  ~filter_graph();

  const std::vector<graph_end>& inputs() const noexcept;
  const std::vector<graph_end>& outputs() const noexcept;

  // Sends a frame to an input. Throws error(invalid_argument) if the input does not exist or has
  // finished, and for a frame of the other kind.
  void send(const frame& next, std::size_t input = 0);

  // Ends one input, or all inputs. When all inputs have ended, receive() returns the last frames,
  // and the next send() begins a new stream. Throws error(invalid_data) if one input has received
  // no frame while another has.
  void finish(std::size_t input);
  void finish();

  // Returns the next frame of an output; empty if the output needs more input or has ended.
  std::optional<frame> receive(std::size_t output = 0);

  // How many times a change of format within a stream restarted the graph.
  std::uint64_t rebuilds() const noexcept;

 private:
  class state;
  std::unique_ptr<state> state_;
};

struct filter_frames_options {
  std::size_t max_frames = 0;  // limit of returned frames; 0: 100,000 more than the input
};

// Filters all frames with a graph of one input and one output. Throws error(limit_exceeded) if the
// graph returns more than `max_frames` frames, as an endless graph does.
std::vector<frame> filter_frames(std::span<const frame> frames, std::string_view text,
                                 const filter_frames_options& options = {});

// Returns the names of the filters of the loaded FFmpeg, in alphabetical order, including filters
// that filter_graph refuses. The module av has the same for decoders and others
// (lade/media/av/ffmpeg.hpp).
std::vector<std::string> ffmpeg_filters();

}  // namespace lade::media
