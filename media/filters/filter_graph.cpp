#include <lade/error.hpp>
#include <lade/media/av.hpp>
#include <lade/media/filters/filter_graph.hpp>
#include <lade/stop_requested.hpp>

#include "../av/av_messages.hpp"
#include "../av/frame_memory.hpp"
#include "compat.hpp"
#include "filter_check.hpp"
#include "graph_pointers.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/mem.h>
}

namespace lade::media {

// A graph and its inputs and outputs that are not linked yet.
struct parsed_graph {
  av_filter_graph graph;
  av_filter_ends inputs;
  av_filter_ends outputs;
};

static parsed_graph parse_graph(const std::string& text, std::string_view doing) {
  parsed_graph parsed{.graph = av_filter_graph(check_av(avfilter_graph_alloc())),
                      .inputs = nullptr,
                      .outputs = nullptr};
  parsed.graph->nb_threads = 1;
  AVFilterInOut* inputs = nullptr;
  AVFilterInOut* outputs = nullptr;
  const av_messages messages;
  const int result = avfilter_graph_parse2(parsed.graph.get(), text.c_str(), &inputs, &outputs);
  parsed.inputs.reset(inputs);
  parsed.outputs.reset(outputs);
  check_av(result, doing, messages);
  return parsed;
}

static std::vector<graph_end> ends_of(const AVFilterInOut* first, bool outputs) {
  std::vector<graph_end> ends;
  for (const auto* each = first; each != nullptr; each = each->next) {
    const auto* pads = outputs ? each->filter_ctx->output_pads : each->filter_ctx->input_pads;
    const bool video = avfilter_pad_get_type(pads, each->pad_idx) == AVMEDIA_TYPE_VIDEO;
    ends.push_back({.label = each->name != nullptr ? each->name : "",
                    .kind = video ? stream_kind::video : stream_kind::audio});
  }
  return ends;
}

static bool same_colours(const AVFrame& x, const AVFrame& y) noexcept {
  return x.colorspace == y.colorspace && x.color_range == y.color_range && same_alpha_mode(x, y);
}

static bool same_format(const frame& a, const frame& b) {
  const auto& x = a.get();
  const auto& y = b.get();
  const bool is_video = a.kind() == stream_kind::video;
  return x.format == y.format && x.width == y.width && x.height == y.height &&
         (!is_video || same_colours(x, y)) && x.sample_rate == y.sample_rate &&
         a.time_base() == b.time_base() &&
         av_channel_layout_compare(&x.ch_layout, &y.ch_layout) == 0;
}

// A frame of FFmpeg that shares the memory of `from`, with a timestamp and a channel layout.
static av_frame share_for_graph(const frame& from) {
  av_frame copy(check_av(av_frame_clone(&from.get())));
  if (const auto stamp = from.pts()) copy->pts = *stamp;
  if (copy->ch_layout.nb_channels > 0 && copy->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC)
    av_channel_layout_default(&copy->ch_layout, copy->ch_layout.nb_channels);
  return copy;
}

// The time at which a frame ends, in units of its time base.
static std::optional<std::int64_t> end_of(const frame& last) {
  const auto time = last.time();
  if (!time) return std::nullopt;
  auto duration = last.duration();
  const auto rate = last.stream().frame_rate();
  if (last.kind() == stream_kind::audio)
    duration = rational(last.samples(), std::max(1, last.sample_rate()));
  else if (duration == 0 && rate)
    duration = rational(1) / *rate;
  return ((*time + duration) / last.time_base()).round();
}

// The most frames that a graph may return per output after its inputs have ended.
static constexpr std::size_t most_held_frames = 100'000;

class filter_graph::state {
 public:
  explicit state(std::string_view from)
      : text(from), doing(fmt::format("filter with \"{}\"", text)) {
    const av_messages said_at_end;  // outlives the graph below
    check_filters(text);
    const auto parsed = parse_graph(text, doing);
    input_ends = ends_of(parsed.inputs.get(), false);
    output_ends = ends_of(parsed.outputs.get(), true);
    if (input_ends.empty() || output_ends.empty())
      throw error(errc::invalid_argument, doing, "it needs an input and an output");
    inputs.resize(input_ends.size());
    outputs.resize(output_ends.size());
  }

  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    const av_messages messages;
    graph.reset();
  }

  void send(const frame& next, std::size_t i) {
    const av_messages messages;
    require_input(i);
    if (stop_requested()) throw error(errc::stopped, doing);
    if (next.kind() != input_ends[i].kind)
      throw error(errc::invalid_argument, doing,
                  fmt::format("input {} takes {}", i, name(input_ends[i].kind)));
    begin_again();
    auto& input = inputs[i];
    if (input.finished)
      throw error(errc::invalid_argument, doing, fmt::format("input {} has finished", i));
    if (graph && !same_format(next, *input.format)) {
      drain();
      ++rebuilds;
    }
    input.format = next;
    input.waiting.push_back(next);
    pump();
  }

  void finish(std::size_t i) {
    const av_messages messages;
    require_input(i);
    inputs[i].finished = true;
    pump();
  }

  std::optional<frame> receive(std::size_t i) {
    if (i >= outputs.size())
      throw error(errc::invalid_argument, doing, fmt::format("it has {} outputs", outputs.size()));
    if (outputs[i].ready.empty()) pull(i);
    if (outputs[i].ready.empty()) return std::nullopt;
    auto next = std::move(outputs[i].ready.front());
    outputs[i].ready.pop_front();
    return next;
  }

  std::string text;
  std::string doing;
  std::vector<graph_end> input_ends;
  std::vector<graph_end> output_ends;
  std::uint64_t rebuilds = 0;

 private:
  struct input_state {
    AVFilterContext* source = nullptr;  // the graph's end of this input
    std::optional<frame> format;        // the last frame that was sent
    std::deque<frame> waiting;          // not sent to the graph yet
    bool finished = false;
    bool closed = false;  // the end has been sent to the graph
  };
  struct output_state {
    AVFilterContext* sink = nullptr;
    std::deque<frame> ready;
  };

  void require_input(std::size_t i) const {
    if (i < inputs.size()) return;
    throw error(errc::invalid_argument, doing, fmt::format("it has {} inputs", inputs.size()));
  }

  bool all_finished() const {
    return std::all_of(inputs.begin(), inputs.end(), [](auto& each) { return each.finished; });
  }

  // A frame after the end of all inputs starts another stream, with a new graph.
  void begin_again() {
    if (!all_finished()) return;
    if (graph) drain();
    for (auto& each : inputs) each = {};
  }

  // Sends waiting frames to the graph. Builds the graph once all formats are known.
  void pump() {
    if (!graph && !has_formats()) return;
    if (!graph) build();
    for (auto& each : inputs) {
      for (; !each.waiting.empty(); each.waiting.pop_front()) push(each, each.waiting.front());
      if (each.finished) close(each);
    }
  }

  bool has_formats() const {
    bool any = false;
    bool missing = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      any = any || inputs[i].format;
      missing = missing || !inputs[i].format;
    }
    if (any && missing && all_finished())
      throw error(errc::invalid_data, doing, "an input had no frame");
    return !missing;
  }

  void push(input_state& to, const frame& next) {
    const auto shared = share_for_graph(next);
    const av_messages messages;
    check_input(av_buffersrc_add_frame(to.source, shared.get()), messages);
  }

  // With "trim", a graph may end before its input. Only newer FFmpeg reports that, as AVERROR_EOF.
  void check_input(int result, const av_messages& messages) const {
    if (result != AVERROR_EOF) check_av(result, doing, messages);
  }

  // Sends the end of an input and its time, which filters of frame rates need.
  void close(input_state& input) {
    if (std::exchange(input.closed, true)) return;
    const auto end = end_of(*input.format).value_or(AV_NOPTS_VALUE);
    const av_messages messages;
    check_input(av_buffersrc_close(input.source, end, AV_BUFFERSRC_FLAG_PUSH), messages);
  }

  // Receives one frame from the graph. Returns false if none is ready.
  bool pull(std::size_t i) {
    if (!graph) return false;
    av_frame next(check_av(av_frame_alloc()));
    auto* sink = outputs[i].sink;
    const av_messages messages;
    const int result = av_buffersink_get_frame(sink, next.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return false;
    check_av(result, doing, messages);
    charge_frame(*next);
    const auto unit = av_buffersink_get_time_base(sink);
    const auto info = stream_info::of_frames(
        fmt::format("filter graph, output {}", i), output_ends[i].kind,
        unit.num > 0 && unit.den > 0 ? rational(unit.num, unit.den) : rational(1));
    outputs[i].ready.emplace_back(std::move(next), info);
    return true;
  }

  // Ends all inputs, receives the remaining frames, and destroys the graph.
  void drain() {
    for (auto& each : inputs) close(each);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      for (std::size_t held = 0; pull(i); ++held)
        if (held == most_held_frames)
          throw error(
              errc::limit_exceeded, doing,
              fmt::format(
                  "the graph does not end: it has returned {} frames since the end of its input",
                  held));
    graph.reset();
    for (auto& each : inputs) each.closed = false;
  }

  void build() {
    const av_messages messages;
    auto parsed = parse_graph(text, doing);
    const AVFilterInOut* end = parsed.inputs.get();
    for (auto& each : inputs) {
      each.source = new_source(*parsed.graph, *each.format);
      check_av(avfilter_link(each.source, 0, end->filter_ctx, static_cast<unsigned>(end->pad_idx)),
               doing);
      end = end->next;
    }
    end = parsed.outputs.get();
    for (std::size_t i = 0; i < outputs.size(); ++i, end = end->next) {
      outputs[i].sink = new_sink(*parsed.graph, output_ends[i].kind);
      check_av(
          avfilter_link(end->filter_ctx, static_cast<unsigned>(end->pad_idx), outputs[i].sink, 0),
          doing);
    }
    const int result = avfilter_graph_config(parsed.graph.get(), nullptr);
    if (result < 0 && result != AVERROR(ENOMEM) && !messages.first_error().empty())
      throw error(av_error_code(result), doing,
                  fmt::format("{} ({})", av_category().message(result), messages.first_error()));
    check_av(result, doing);
    graph = std::move(parsed.graph);
  }

  AVFilterContext* new_source(AVFilterGraph& in, const frame& format) const {
    const bool video = format.kind() == stream_kind::video;
    auto* source = check_av(avfilter_graph_alloc_filter(
        &in, avfilter_get_by_name(video ? "buffer" : "abuffer"), nullptr));
    const std::unique_ptr<AVBufferSrcParameters, void (*)(void*)> parameters(
        check_av(av_buffersrc_parameters_alloc()), av_free);
    const auto shared = share_for_graph(format);
    const auto& from = *shared;
    parameters->format = from.format;
    parameters->time_base = {static_cast<int>(format.time_base().numerator()),
                             static_cast<int>(format.time_base().denominator())};
    parameters->width = from.width;
    parameters->height = from.height;
    parameters->sample_aspect_ratio = from.sample_aspect_ratio;
    parameters->sample_rate = from.sample_rate;
    parameters->ch_layout = from.ch_layout;  // FFmpeg copies it
    set_source_colour(*parameters, from);
    check_av(av_buffersrc_parameters_set(source, parameters.get()), doing);
    check_av(avfilter_init_dict(source, nullptr), doing);
    return source;
  }

  AVFilterContext* new_sink(AVFilterGraph& in, stream_kind kind) const {
    AVFilterContext* sink = nullptr;
    const char* filter = kind == stream_kind::video ? "buffersink" : "abuffersink";
    check_av(avfilter_graph_create_filter(&sink, avfilter_get_by_name(filter), nullptr, nullptr,
                                          nullptr, &in),
             doing);
    return sink;
  }

  av_filter_graph graph;  // null until all formats are known
  std::vector<input_state> inputs;
  std::vector<output_state> outputs;
};

filter_graph::filter_graph(std::string_view text) : state_(std::make_unique<state>(text)) {}
filter_graph::filter_graph(filter_graph&&) noexcept = default;
filter_graph& filter_graph::operator=(filter_graph&&) noexcept = default;
filter_graph::~filter_graph() = default;

const std::vector<graph_end>& filter_graph::inputs() const noexcept { return state_->input_ends; }
const std::vector<graph_end>& filter_graph::outputs() const noexcept { return state_->output_ends; }
std::uint64_t filter_graph::rebuilds() const noexcept { return state_->rebuilds; }

void filter_graph::send(const frame& next, std::size_t input) { state_->send(next, input); }
void filter_graph::finish(std::size_t input) { state_->finish(input); }
void filter_graph::finish() {
  for (std::size_t i = 0; i < inputs().size(); ++i) finish(i);
}
std::optional<frame> filter_graph::receive(std::size_t output) { return state_->receive(output); }

std::vector<frame> filter_frames(std::span<const frame> frames, std::string_view text,
                                 const filter_frames_options& options) {
  const std::size_t most =
      options.max_frames == 0 ? frames.size() + most_held_frames : options.max_frames;
  filter_graph graph(text);
  std::vector<frame> filtered;
  const auto receive_all = [&] {
    while (auto next = graph.receive()) {
      if (filtered.size() == most)
        throw error(errc::limit_exceeded, fmt::format("filter with \"{}\"", text),
                    fmt::format("it returns more than {} frames", most));
      filtered.push_back(std::move(*next));
    }
  };
  for (const auto& each : frames) {
    graph.send(each);
    receive_all();
  }
  graph.finish();
  receive_all();
  return filtered;
}

std::vector<std::string> ffmpeg_filters() {
  std::vector<std::string> names;
  void* position = nullptr;
  while (const auto* each = av_filter_iterate(&position)) names.emplace_back(each->name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lade::media
