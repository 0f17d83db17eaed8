"""The console: a page in the browser that shows what the engine says, live.

1. One thread surveys the engine (`watcher`), for all browsers: an engine with 10,000 names must not be asked more often
   because more people look. What was seen becomes a `SurveySnapshot`; what changed between two of them becomes history
   (`history`), which is bounded in names and entries.
2. A browser is sent the part that it shows (`pictures`), never the whole survey: a page of names, a page of waiters.
3. `api` is the web application, `guard` stands in front of it: who may ask (Host, Origin, the session), and the headers
   that keep a browser from doing what nobody meant. It reads; it writes only if it was told so at its start.
4. The page itself is files in their own languages (`page/`): no build step, nothing from elsewhere. It makes elements
   and sets their text; it never parses a text as HTML, and the browser is told to refuse that.

What is pure (no socket, no thread): `snapshot`, `history`, `pictures`, `figures`.
"""
