#!/usr/bin/env node
require("../run.js")("muster-example");
