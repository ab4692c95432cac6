// The two programs of a point: where it falls, and what colour it has. Colour is looked up, never stored per point and head.

/** Texels a row of the texture that holds all places; a power of two, so that a number splits by bits. */
export const WIDE_BITS = 12;

export const VERTEX = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;
layout(location = 0) in uint value;   // of the colouring, one a point
layout(location = 1) in uint mark;    // 0: plain, 1: found or lit
layout(location = 2) in vec4 cell;    // one a panel: corner on screen (x, y), its head, how clear it stands
layout(location = 3) in vec3 shape;   // one a panel: share of the longest side that each axis takes
layout(location = 4) in vec4 span;    // one a panel: where the lengths of queries start and end on its scale, and those of keys
uniform usampler2D places;
uniform sampler2D norms;
uniform sampler2D scale;
uniform int first;
uniform int stride;
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
flat out vec3 colour;
flat out float radius;

void main() {
  int at = first + gl_VertexID * stride;
  int index = int(cell.z) * points + at;
  ivec2 texel = ivec2(index & ${(1 << WIDE_BITS) - 1}, index >> ${WIDE_BITS});
  vec3 place = vec3(texelFetch(places, texel, 0).xyz) / 65535.0;
  if (!deep) place.z = 0.5;
  vec3 seen = turn * ((place - 0.5) * shape);
  vec2 local = 0.5 + room * vec2(seen.x, -seen.y);
  vec2 pixel = cell.xy + side * local;
  float norm = 0.5;
  if (normColour || normSize) {
    vec2 ends = at < queries ? span.xy : span.zw;
    norm = mix(ends.x, ends.y, texelFetch(norms, texel, 0).r);
  }
  int shade = normColour ? int(norm * 255.0 + 0.5) : int(value);
  vec3 own = texelFetch(scale, ivec2(shade, at < queries ? 0 : 1), 0).rgb;
  bool marked = mark > 0u;
  // Flat maps have no front; points are shuffled in depth, so that neither queries nor keys cover the others.
  float far = deep ? 0.5 - seen.z : fract(float(at) * 0.61803398875);
  float back = marked ? 0.0 : dim;
  if (deep) back = 1.0 - (1.0 - back) * (1.0 - 0.45 * clamp(far, 0.0, 1.0));
  colour = mix(own, paper, 1.0 - (1.0 - back) * cell.w);
  radius = size * (marked ? 1.7 : 1.0) * (normSize ? 0.45 + 1.4 * norm : 1.0) * (deep ? 1.25 - 0.5 * far : 1.0);
  float depth = (marked ? -0.9 : 0.05) + 0.8 * clamp(far, 0.0, 1.0);
  gl_Position = vec4(pixel.x / screen.x * 2.0 - 1.0, 1.0 - pixel.y / screen.y * 2.0, depth, 1.0);
  gl_PointSize = max(1.0, radius + (radius > 2.5 ? 1.0 : 0.0));
}`;

export const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 colour;
flat in float radius;
out vec4 ink;

void main() {
  float alpha = 1.0;
  if (radius > 2.5) {
    float away = length(gl_PointCoord - 0.5) * (radius + 1.0);
    alpha = clamp(0.5 * radius - away + 0.5, 0.0, 1.0);
    if (alpha < 0.1) discard;
  }
  ink = vec4(colour * alpha, alpha);
}`;
