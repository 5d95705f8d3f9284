"""The documentation page of the HTTP interface in a real browser."""

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Open, width_of

from bayescontrol.durable.models import KINDS
from bayescontrol.serve import Server, Tokens

TOKEN = "a-token-that-is-long-enough"


@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_the_page_describes_the_models_and_sends_their_examples(
    visit: Open, width: int, phone: bool
) -> None:
    with Server("sqlite:///:memory:", port=0, tokens=Tokens([TOKEN])) as server:
        visited = visit(f"{server.url}/docs", width, phone)
        page = visited.page
        page.get_by_role("button", name="Authorize").click()
        page.locator(".auth-container input").fill(TOKEN)
        page.get_by_role("button", name="Apply credentials").click()
        page.get_by_role("button", name="Close").click()
        create = page.locator("#operations-agents-create")
        create.locator(".opblock-summary-control").click()
        headings = create.locator(".opblock-description h3")
        expect(headings).to_have_text(list(KINDS))
        create.get_by_role("button", name="Try it out").click()
        create.locator(".examples-select-element").select_option("gaussian-bandit")
        create.get_by_role("button", name="Execute").click()
        expect(create.locator(".live-responses-table .response-col_status")).to_have_text(
            ["Code", "201"]
        )
        expect(create.locator(".curl")).to_contain_text(f"{server.url}/v1/agents")
        assert width_of(page) == [width, width]
        assert all(url.startswith(server.url) for url in visited.requests)
    assert visited.messages == []
