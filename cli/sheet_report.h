#pragma once

#include <string>

#include "boost/json/object.hpp"
#include "planner/model_sheet.h"

namespace millrace::cli {

// What `inspect` says of a configuration alone whose family the engine does not
// run: the keys of ModelReport() as far as a configuration has them, and
//   {runs: false, recurrent_bytes_per_sequence, convolution_bytes_per_sequence
//    (f32), layer_details [{layer, kind, parameters, stored_bytes,
//    weights_bytes, experts, experts_per_token, expert_bytes,
//    kv_bytes_per_token, window, state_bytes_per_sequence, vectors}]}
// `vectors`: of hidden_size per token across a cut before the layer.
boost::json::object SheetReport(const planner::ModelSheet& sheet);

std::string SheetReportText(const boost::json::object& report);

}  // namespace millrace::cli
