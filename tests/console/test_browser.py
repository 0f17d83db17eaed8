"""The page in a real Chromium: what is shown is what the engine says, live; names are text; changes need the secret."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from selenium.common.exceptions import JavascriptException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import holdfast
from tests.cli.harness import LONG, eventually
from tests.console.browser import Browser, browsing
from tests.console.served import SECRET, Served, served

URL = "memory://console-browser"
EVICT = """
return fetch("/api/evict", {
  method: "POST", headers: {"Content-Type": "application/json"},
  body: JSON.stringify({name: "stuck", token: arguments[0]}),
}).then((answer) => answer.status)
"""
UNNAMED = """
return [...document.querySelectorAll("button, a, input, table, [role=meter], section, svg[role=img]")]
  .filter((each) => !(each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") || each.innerText))
  .filter((each) => each.checkVisibility()).map((each) => each.outerHTML)
"""
ODD_NAMES = (
    "<script>document.title = 'owned'</script>",
    '"><img src=x onerror="document.title = `owned`">',
    "it's/a & <b>bold</b> &lt;name&gt;",
    "javascript:document.title='owned'",
    "日本語/ロック",
    "long/" + "x" * 500,
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(autouse=True)
def wide(browser: Browser) -> None:
    browser.emulate(1280)


@pytest.fixture
def locks() -> Iterator[holdfast.Coordinator]:
    with holdfast.connect(URL) as locks:
        yield locks


@pytest.fixture
def console(locks: holdfast.Coordinator) -> Iterator[Served]:
    with served(locks, URL) as console:
        yield console


def row(browser: Browser, name: str) -> str:
    words = "return document.querySelector(`tr[data-name=${CSS.escape(arguments[0])}]`)?.innerText || ''"
    return str(browser.run(words, name))


def waiters(locks: holdfast.Coordinator, name: str, count: int) -> list[threading.Thread]:
    """So many threads that wait for a name, in line."""
    threads = [
        threading.Thread(target=lambda: locks.lock(name, timeout=LONG * 3).acquire().release()) for _ in range(count)
    ]
    for number, thread in enumerate(threads, 1):
        thread.start()
        eventually(lambda number=number: len(locks.survey(name)[0].waiters) == number)  # type: ignore[misc]
    return threads


def test_what_is_shown_is_what_the_engine_says_and_changes_appear(
    browser: Browser, locks: holdfast.Coordinator, console: Served
) -> None:
    browser.open(console.url)
    browser.shows("main", "No lock is held")
    with locks.lock("orders/7", ttl=30) as lease:
        browser.shows("tbody", "orders/7")
        (view,) = locks.survey("orders/7")
        shown = row(browser, "orders/7")
        assert str(lease.token) in shown
        assert f"{view.holders[0].host}:{view.holders[0].pid}" in shown
        threads = waiters(locks, "orders/7", 3)
        browser.until(lambda: browser.text("#sum-waiting") == "3", "three wait")
        browser.click("a.name")
        browser.shows("[aria-label=Waiters] tbody", "3")
        assert [text.split()[0] for text in browser.all("[aria-label=Waiters] tbody tr")] == ["1", "2", "3"]
        assert browser.text("[aria-label=Holders] tbody").count(str(lease.token)) == 1
        meter = browser.find("[aria-label=Holders] [role=meter]")
        assert 60 < int(meter.get_attribute("aria-valuenow") or 0) <= 100
    for thread in threads:
        thread.join()
    browser.shows("main", "Nobody holds it.")
    browser.shows(".events", "ended")
    assert str(lease.token) in browser.text(".events")
    assert browser.complaints() == []


def test_names_are_text_whatever_is_in_them(browser: Browser, locks: holdfast.Coordinator, console: Served) -> None:
    with ExitStack() as held:
        for name in ODD_NAMES:
            held.enter_context(locks.lock(name))
        browser.open(console.url)
        browser.until(lambda: len(browser.all("tbody a.name")) == len(ODD_NAMES), "all names")
        names = browser.run("return [...document.querySelectorAll('tbody a.name')].map((each) => each.textContent)")
        assert sorted(names) == sorted(ODD_NAMES)
        for name in ODD_NAMES:
            browser.run("location.hash = addressOf('lock', { name: arguments[0] })", name)
            browser.until(lambda name=name: browser.run("return $('lock-title')?.textContent") == name, name)  # type: ignore[misc]
            browser.shows("[aria-label=Holders] tbody", "lock")
        assert browser.run("return document.querySelectorAll('main script, main img, main b:not(.kind)').length") == 0
        assert browser.driver.title != "owned"
        assert browser.complaints() == []


@pytest.mark.parametrize(
    "script",
    [
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.setAttribute('onclick', 'document.title = 1')",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))",
        "setTimeout('document.title = 1')",
    ],
)
def test_the_browser_itself_refuses_scripts_and_html_that_are_not_ours(
    browser: Browser, console: Served, script: str
) -> None:
    browser.open(console.url)
    browser.find("#live[data-state=live]")
    with pytest.raises(JavascriptException, match=r"Trusted|unsafe-eval"):
        browser.run(script)
    browser.complaints()


def test_search_by_prefix_and_keys(browser: Browser, locks: holdfast.Coordinator, console: Served) -> None:
    with ExitStack() as held:
        for name in ("orders/1", "orders/2", "orders/20", "mail/1"):
            held.enter_context(locks.lock(name))
        browser.open(console.url)
        browser.until(lambda: len(browser.all("tbody tr")) == 4, "four rows")
        body = browser.driver.find_element(By.TAG_NAME, "body")
        body.send_keys("/")
        browser.driver.switch_to.active_element.send_keys("orders/2")
        browser.until(lambda: browser.all("tbody a.name") == ["orders/2", "orders/20"], "two rows")
        assert browser.run("return document.activeElement.id") == "search"  # what is typed next goes there, too
        browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
        assert browser.run("return document.activeElement.textContent") == "orders/2"
        version = int(browser.run("return document.body.dataset.version"))
        browser.until(lambda: int(browser.run("return document.body.dataset.version")) > version, "another survey")
        assert browser.run("return document.activeElement.textContent") == "orders/2"  # an update takes nobody's focus
        browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        browser.until(lambda: browser.text("#lock-title") == "orders/2", "its page")
        browser.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
        browser.until(lambda: len(browser.all("tbody tr")) == 4, "back again")


def test_many_locks_and_many_who_wait_are_shown_in_pages(browser: Browser) -> None:
    url = "memory://console-crowd"
    with holdfast.connect(url) as locks, ExitStack() as held:
        for number in range(130):
            held.enter_context(locks.lock(f"n/{number:03}"))
        with served(locks, url) as console:
            browser.open(console.url)
            browser.shows(".pager", "1–50 of 130 names")
            assert len(browser.all("tbody tr")) == 50
            browser.driver.find_element(By.TAG_NAME, "body").send_keys("n")
            browser.shows(".pager", "51–100 of 130 names")
            browser.until(lambda: browser.all("tbody a.name")[:1] == ["n/050"], "the second page")
            browser.run("location.hash = '#/lock?name=n/000'")
            threads = waiters(locks, "n/000", 120)
            browser.shows(".pager", "1–100 of 120 waiters")
            assert len(browser.all("[aria-label=Waiters] tbody tr")) == 100
            held.close()
            for thread in threads:
                thread.join()


def test_a_stream_that_was_cut_comes_back(browser: Browser, locks: holdfast.Coordinator, console: Served) -> None:
    browser.open(console.url)
    browser.find("#live[data-state=live]")
    browser.driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    try:
        browser.run("stream.source.close(); stream.source.onerror()")  # as a server that refuses ends it
        browser.find("#live[data-state=reconnecting]")
    finally:
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline | {"offline": False})
    with locks.lock("after/the/cut"):
        browser.find("#live[data-state=live]")
        browser.shows("tbody", "after/the/cut")
    browser.complaints()  # the cut was meant


def test_without_the_secret_nothing_is_shown_and_with_it_a_hold_can_be_ended(
    browser: Browser, locks: holdfast.Coordinator
) -> None:
    lease = locks.lock("stuck", ttl=60).acquire()
    with served(locks, URL, secret=SECRET, writable=True) as console:
        browser.open(f"{console.url}/#/lock?name=stuck")
        secret = browser.find("#secret")
        assert str(lease.token) not in browser.driver.page_source
        secret.send_keys("not the secret", Keys.ENTER)
        browser.shows("#secret-problem", "that is not the secret")
        assert browser.run(EVICT, str(lease.token)) == 401
        browser.find("#secret").clear()
        browser.find("#secret").send_keys(SECRET, Keys.ENTER)
        browser.shows("[aria-label=Holders] tbody", str(lease.token))
        assert browser.run(EVICT, str(lease.token)) == 403  # the session alone is not enough
        browser.click("button.danger")
        browser.shows("dialog", "only a fence keeps its late writes out")
        browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        browser.until(lambda: not browser.all("dialog"), "closed")
        assert locks.survey("stuck")[0].holders[0].token == lease.token
        browser.click("button.danger")
        browser.click("dialog button.danger")
        browser.shows("main", "Nobody holds it.")
        browser.shows(".events", "evicted")
        assert locks.survey("stuck") == []
        assert SECRET not in browser.driver.page_source
        assert SECRET not in browser.driver.current_url
        assert browser.run("return document.cookie + JSON.stringify({...localStorage, ...sessionStorage})") == "{}"
        browser.click("#sign-out")
        browser.find("#secret")
    browser.complaints()


def test_by_default_no_button_changes_anything(browser: Browser, locks: holdfast.Coordinator, console: Served) -> None:
    with locks.lock("x"):
        browser.open(f"{console.url}/#/lock?name=x")
        browser.shows("[aria-label=Holders] tbody", "lock")
        assert not any(each.is_displayed() for each in browser.driver.find_elements(By.CSS_SELECTOR, ".acts"))
        browser.shows("footer", "read only")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_every_view_fits_and_can_be_read_aloud(
    browser: Browser, locks: holdfast.Coordinator, console: Served, width: int, dark: bool
) -> None:
    browser.emulate(width, dark)
    with locks.lock("a"), locks.semaphore("s", permits=2), locks.lock("w" * 512), locks.partitions("p", shards=2):
        browser.open(console.url)
        for view in ("locks", "lock?name=a", "partitions", "elections", "limits", "metrics", "health"):
            browser.run("delete document.body.dataset.version; location.hash = '#/' + arguments[0]", view)
            browser.until(lambda: browser.run("return document.body.dataset.version"), f"a picture of {view}")
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide"
            assert browser.run(UNNAMED) == []
            assert browser.run("return document.querySelectorAll('nav [aria-current=page]').length") == 1
        light = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(247, 246, 242)"
        assert light != dark
        browser.click("#theme")  # and by hand: dark, whatever the system says
        assert browser.run("return getComputedStyle(document.body).backgroundColor") != "rgb(247, 246, 242)"
        browser.run("localStorage.clear()")
        assert browser.complaints() == []


def test_the_page_asks_nobody_else(browser: Browser, console: Served) -> None:
    browser.open(console.url)
    browser.find("#live[data-state=live]")
    asked = browser.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert asked
    assert [address for address in asked if not address.startswith(console.url)] == []
