#include "embedded_files.h"

// #embed is a part of C23. Swift has nothing like it, and takes minutes to compile array literals of this size
// (https://github.com/swiftlang/swift-package-manager/issues/6923). The compiler notes the files as dependencies.
#ifndef __has_embed
#error "#embed requires clang 19 or newer"
#endif
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t asyncapi_yaml[] = {
#embed "../../Halcyon/HalcyonGateway/Documents/asyncapi.yaml"
};
static const uint8_t openapi_yaml[] = {
#embed "../../Halcyon/HalcyonGateway/Documents/openapi.yaml"
};
static const uint8_t access_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/access.js"
};
static const uint8_t actions_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/actions.js"
};
static const uint8_t api_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/api.js"
};
static const uint8_t batches_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/batches.js"
};
static const uint8_t cluster_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/cluster.js"
};
static const uint8_t dashboard_css[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/dashboard.css"
};
static const uint8_t dashboard_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/dashboard.js"
};
static const uint8_t dead_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/dead.js"
};
static const uint8_t elements_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/elements.js"
};
static const uint8_t failures_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/failures.js"
};
static const uint8_t figures_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/figures.js"
};
static const uint8_t format_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/format.js"
};
static const uint8_t gallery_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/gallery.js"
};
static const uint8_t index_html[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/index.html"
};
static const uint8_t job_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/job.js"
};
static const uint8_t jobs_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/jobs.js"
};
static const uint8_t keyboard_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/keyboard.js"
};
static const uint8_t pictures_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/pictures.js"
};
static const uint8_t reproduce_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/reproduce.js"
};
static const uint8_t stream_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/stream.js"
};
static const uint8_t trial_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/trial.js"
};
static const uint8_t views_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/views.js"
};
static const uint8_t waterfall_js[] = {
#embed "../../Halcyon/HalcyonGateway/Dashboard/Page/waterfall.js"
};
static const uint8_t astronaut_jpg[] = {
#embed "../../../Samples/astronaut.jpg"
};
static const uint8_t chelsea_jpg[] = {
#embed "../../../Samples/chelsea.jpg"
};
static const uint8_t coffee_jpg[] = {
#embed "../../../Samples/coffee.jpg"
};

#define FILE(name, bytes) {name, bytes, sizeof bytes}

static const struct embedded_file files[] = {
    FILE("asyncapi.yaml", asyncapi_yaml),
    FILE("openapi.yaml", openapi_yaml),
    FILE("access.js", access_js),
    FILE("actions.js", actions_js),
    FILE("api.js", api_js),
    FILE("batches.js", batches_js),
    FILE("cluster.js", cluster_js),
    FILE("dashboard.css", dashboard_css),
    FILE("dashboard.js", dashboard_js),
    FILE("dead.js", dead_js),
    FILE("elements.js", elements_js),
    FILE("failures.js", failures_js),
    FILE("figures.js", figures_js),
    FILE("format.js", format_js),
    FILE("gallery.js", gallery_js),
    FILE("index.html", index_html),
    FILE("job.js", job_js),
    FILE("jobs.js", jobs_js),
    FILE("keyboard.js", keyboard_js),
    FILE("pictures.js", pictures_js),
    FILE("reproduce.js", reproduce_js),
    FILE("stream.js", stream_js),
    FILE("trial.js", trial_js),
    FILE("views.js", views_js),
    FILE("waterfall.js", waterfall_js),
    FILE("astronaut.jpg", astronaut_jpg),
    FILE("chelsea.jpg", chelsea_jpg),
    FILE("coffee.jpg", coffee_jpg),
    {NULL, NULL, 0},
};

const struct embedded_file *embedded_files(void) { return files; }
