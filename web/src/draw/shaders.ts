// Where is a point of the map, and which colour has it? Colours are looked up, not stored for each point and head.

/** Texels in a row of the textures with long lists; a power of two, so that a number is split by its bits. */
export const WIDE_BITS = 12;

export const VERTEX = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;
layout(location = 0) in uint index;   // head · points + point
uniform usampler2D own;               // one a point: value of the colouring, and 1 where it was found or is lit
uniform sampler2D cells;              // three a head: corner on screen and how clear it stands; its shape; its span
uniform usampler2D places;
uniform sampler2D norms;
uniform sampler2D scale;
uniform int points;
uniform int queries;
uniform bool normColour;
uniform bool normSize;
uniform float side;                   // of a panel, in pixels
uniform vec2 screen;
uniform float size;
uniform float dim;                    // how far plain points step back
uniform vec3 paper;
uniform mat3 turn;
uniform float room;
uniform bool deep;
uniform float edge;                   // room for a soft edge
uniform usampler2D boxes;             // one a point: its part of the sheet, left top right bottom; empty for no patch
uniform float thumb;                  // side of a patch in pixels; 0: all points are dots
uniform vec2 sheetSize;
flat out vec3 colour;
flat out float radius;
flat out vec4 area;
flat out vec2 shape;                  // of a patch, its longer side 1
flat out float fade;

// As in sift.ts.
float shuffled(int at) {
  return float((uint(at) * 2654435769u) >> 8) / 16777216.0;
}

ivec2 split(int at) {
  return ivec2(at & ${(1 << WIDE_BITS) - 1}, at >> ${WIDE_BITS});
}

void main() {
  int head = int(index) / points;
  int at = int(index) - head * points;
  ivec2 texel = split(int(index));
  vec4 cell = texelFetch(cells, split(head * 3), 0);
  vec3 span3 = texelFetch(cells, split(head * 3 + 1), 0).xyz;
  uvec2 byte = texelFetch(own, split(at), 0).xy;
  vec3 place = vec3(texelFetch(places, texel, 0).xyz) / 65535.0;
  if (!deep) place.z = 0.5;
  vec3 seen = turn * ((place - 0.5) * span3);
  vec2 local = 0.5 + room * vec2(seen.x, -seen.y);
  vec2 pixel = cell.xy + side * local;
  float norm = 0.5;
  if (normColour || normSize) {
    vec4 span = texelFetch(cells, split(head * 3 + 2), 0);
    vec2 ends = at < queries ? span.xy : span.zw;
    norm = mix(ends.x, ends.y, texelFetch(norms, texel, 0).r);
  }
  int shade = normColour ? int(norm * 255.0 + 0.5) : int(byte.x);
  vec3 tint = texelFetch(scale, ivec2(shade, at < queries ? 0 : 1), 0).rgb;
  bool marked = byte.y > 0u;
  // 2-D maps have no depth; points get a random one, so that neither queries nor keys cover the others.
  float far = deep ? 0.5 - seen.z : shuffled(at);
  float back = marked ? 0.0 : dim;
  if (deep) back = 1.0 - (1.0 - back) * (1.0 - 0.45 * clamp(far, 0.0, 1.0));
  fade = 1.0 - (1.0 - back) * cell.z;
  colour = mix(tint, paper, fade);
  area = vec4(0.0);
  if (thumb > 0.0) area = vec4(texelFetch(boxes, split(at), 0)) / 65535.0;
  bool patch_ = area.z > area.x;
  radius = size * (marked ? 1.7 : 1.0) * (normSize ? 0.45 + 1.4 * norm : 1.0) * (deep ? 1.25 - 0.5 * far : 1.0);
  if (patch_) {
    vec2 pixels = (area.zw - area.xy) * sheetSize;
    shape = pixels / max(pixels.x, pixels.y);
    radius = thumb * (marked ? 1.3 : 1.0) * (normSize ? 0.45 + 1.1 * norm : 1.0) * (deep ? 1.25 - 0.5 * far : 1.0);
  }
  float depth = (marked ? -0.9 : 0.05) + 0.8 * clamp(far, 0.0, 1.0);
  gl_Position = vec4(pixel.x / screen.x * 2.0 - 1.0, 1.0 - pixel.y / screen.y * 2.0, depth, 1.0);
  gl_PointSize = max(1.0, radius + edge);
}`;

/** Dots of one or two pixels: squares. Without `discard` the GPU can skip hidden points. */
export const SQUARE = `#version 300 es
precision mediump float;
flat in vec3 colour;
flat in float radius;
out vec4 ink;

void main() {
  ink = vec4(colour, 1.0);
}`;

export const ROUND = `#version 300 es
precision mediump float;
flat in vec3 colour;
flat in float radius;
out vec4 ink;

void main() {
  float away = length(gl_PointCoord - 0.5) * (radius + 1.0);
  float alpha = clamp(0.5 * radius - away + 0.5, 0.0, 1.0);
  if (alpha < 0.1) discard;
  ink = vec4(colour * alpha, alpha);
}`;

/** Points as patches, framed in their colour or tinted with it; other tokens are dots. */
export const PATCH = `#version 300 es
precision highp float;
uniform sampler2D sheet;
uniform vec2 sheetSize;
uniform vec3 paper;
uniform float frame;                  // thickness in pixels
uniform float tinted;
flat in vec3 colour;
flat in float radius;
flat in vec4 area;
flat in vec2 shape;
flat in float fade;
out vec4 ink;

void main() {
  if (area.z <= area.x) {
    float away = length(gl_PointCoord - 0.5) * (radius + 1.0);
    float alpha = clamp(0.5 * radius - away + 0.5, 0.0, 1.0);
    if (alpha < 0.1) discard;
    ink = vec4(colour * alpha, alpha);
    return;
  }
  vec2 inside = (gl_PointCoord - 0.5) / shape + 0.5;
  if (inside != clamp(inside, 0.0, 1.0)) discard;
  vec2 rim = (0.5 - abs(inside - 0.5)) * shape * radius;
  // Half a texel inside, so that no neighbour on the sheet is visible.
  vec2 half_ = 0.5 / sheetSize;
  vec3 seen = texture(sheet, clamp(mix(area.xy, area.zw, inside), area.xy + half_, area.zw - half_)).rgb;
  vec3 body = mix(mix(seen, paper, fade), colour, tinted);
  ink = vec4(min(rim.x, rim.y) < frame ? colour : body, 1.0);
}`;
